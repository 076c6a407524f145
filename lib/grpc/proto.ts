import { fileURLToPath } from 'node:url'
import { loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync, type Options } from '@grpc/proto-loader'
import type { ProtoGrpcType as HealthProto } from '../csi/generated/health.js'

/** What the loader gives at run time is what `scripts/generate-types.mjs` writes as types: the options are the same. */
const options: Options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true }

let health: HealthProto | undefined

/** The health service that gRPC servers share, loaded at its first use. */
export function healthProto(): HealthProto['grpc']['health']['v1'] {
  health ??= loadProto('grpc/health/v1/health.proto') as HealthProto
  return health.grpc.health.v1
}

/** What a file below `proto` describes. */
export function loadProto(file: string): unknown {
  const root = fileURLToPath(new URL('../..', import.meta.resolve('#proto/csi/v1/csi.proto')))
  return loadPackageDefinition(loadSync(file, { ...options, includeDirs: [root] }))
}
