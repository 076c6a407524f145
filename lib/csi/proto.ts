import { fileURLToPath } from 'node:url'
import { loadPackageDefinition, type GrpcObject } from '@grpc/grpc-js'
import { loadSync, type Options } from '@grpc/proto-loader'

/** What the loader gives at run time is what `scripts/generate-types.mjs` writes as types: the options are the same. */
const options: Options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true }

let csi: GrpcObject | undefined

/** The CSI services, loaded at their first use: 70 ms that a host without CSI plugins does not pay. */
export function csiProto<T>(): T {
  csi ??= load('csi/v1/csi.proto')
  return csi as T
}

/** Loads one of the package's own .proto files. */
export function load(file: string): GrpcObject {
  const root = fileURLToPath(new URL('.', import.meta.resolve('#proto/csi/v1/csi.proto')))
  return loadPackageDefinition(loadSync(file, { ...options, includeDirs: [`${root}../..`] }))
}
