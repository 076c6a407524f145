import { fileURLToPath } from 'node:url'
import { loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync, type Options } from '@grpc/proto-loader'
import type { ProtoGrpcType as CsiProto } from './generated/csi.js'
import type { ProtoGrpcType as HealthProto } from './generated/health.js'
import type { ProtoGrpcType as RegistrationProto } from './generated/registration.js'

/** What the loader gives at run time is what `scripts/generate-types.mjs` writes as types: the options are the same. */
const options: Options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true }

let csi: CsiProto | undefined
let health: HealthProto | undefined
let registration: RegistrationProto | undefined

/** The CSI services and messages, loaded at their first use: 70 ms that a host without CSI plugins does not pay. */
export function csiProto(): CsiProto['csi']['v1'] {
  csi ??= load('csi/v1/csi.proto') as CsiProto
  return csi.csi.v1
}

/** The health service that gRPC servers share, loaded at its first use. */
export function healthProto(): HealthProto['grpc']['health']['v1'] {
  health ??= load('grpc/health/v1/health.proto') as HealthProto
  return health.grpc.health.v1
}

/** The service of registrars, loaded at its first use. */
export function registrationProto(): RegistrationProto['pluginregistration'] {
  registration ??= load('pluginregistration/v1/registration.proto') as RegistrationProto
  return registration.pluginregistration
}

function load(file: string): unknown {
  const root = fileURLToPath(new URL('../..', import.meta.resolve('#proto/csi/v1/csi.proto')))
  return loadPackageDefinition(loadSync(file, { ...options, includeDirs: [root] }))
}
