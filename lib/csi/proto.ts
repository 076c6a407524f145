import { loadProto } from '../grpc/proto.js'
import type { ProtoGrpcType as CsiProto } from './generated/csi.js'
import type { ProtoGrpcType as RegistrationProto } from './generated/registration.js'

let csi: CsiProto | undefined
let registration: RegistrationProto | undefined

/** The CSI services and messages, loaded at their first use: 70 ms that a host without CSI plugins does not pay. */
export function csiProto(): CsiProto['csi']['v1'] {
  csi ??= loadProto('csi/v1/csi.proto') as CsiProto
  return csi.csi.v1
}

/** The service of registrars, loaded at its first use. */
export function registrationProto(): RegistrationProto['pluginregistration'] {
  registration ??= loadProto('pluginregistration/v1/registration.proto') as RegistrationProto
  return registration.pluginregistration
}
