import type { CsiMethods } from './client.js'
import { volumeCapability, type VolumeCapability } from './messages/volume-capability.js'
import { operations } from './operations.js'
import type { AnyCsiRpc } from './rpcs.js'

/** Looks at a request as its call would, without making it. @throws ERR_OPTION_INVALID naming the field. */
export function checkRequest(method: keyof CsiMethods, request: object): void {
  requestOf(method).write(request, '')
}

/** The fields that the request of a call has. */
export function requestFields(method: keyof CsiMethods): readonly string[] {
  return requestOf(method).fields
}

function requestOf(method: keyof CsiMethods) {
  const rpc = `${method.charAt(0).toUpperCase()}${method.slice(1)}` as AnyCsiRpc
  return operations[rpc].request as {
    readonly fields: readonly string[]
    readonly write: (request: object, field: string) => unknown
  }
}

/** As `checkRequest` for a way to use a volume. @throws ERR_OPTION_INVALID naming the field, which is below `field`. */
export function checkAccess(access: VolumeCapability, field: string): void {
  volumeCapability.write(access, field)
}
