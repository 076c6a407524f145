import { socketPathLimitBytes } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'

/** The option that says over which registration socket an instance was announced. */
export const registrationSocketOption = 'registrationSocket'

/** What a registrar says of the plugin that it announces. */
export interface RegistrarInfo {
  /** As in `CSIPlugin`. */
  type: string
  name: string
  /** Where the plugin is served; empty: on the registration socket itself. */
  endpoint: string
  /** As in `1.0.0`. */
  supportedVersions: readonly string[]
}

/** What a registrar is told. */
export type RegistrarVerdict = { registered: true } | { registered: false; error: string }

/** A CSI driver that was announced. */
export interface Announcement {
  name: string
  /** Absolute. */
  endpoint: string
}

/**
 * Reads what was said over a registration socket.
 *
 * @throws ERR_OPTION_INVALID naming the field; ERR_SOCKET_PATH where the endpoint is longer than the platform takes.
 */
export function readAnnouncement(info: RegistrarInfo, registrationSocket: string): Announcement {
  const { type, name, supportedVersions } = info
  if (type !== 'CSIPlugin') throw invalidOption('type', type, 'CSIPlugin: nothing else is registered here')
  if (name === '') throw invalidOption('name', name, 'the name of the driver')
  // Registrars say 1.0.0 whichever minor version the driver has.
  if (!supportedVersions.some((version) => /^v?1(\.|$)/.test(version)))
    throw invalidOption('supported_versions', supportedVersions.join(', '), 'a list with a version 1 of CSI')
  const endpoint = info.endpoint.replace(/^unix:(\/\/)?/, '') || registrationSocket
  if (!endpoint.startsWith('/') || endpoint.includes('\0'))
    throw invalidOption('endpoint', endpoint, 'the absolute path of a socket')
  const lengthBytes = Buffer.byteLength(endpoint)
  if (lengthBytes <= socketPathLimitBytes) return { name, endpoint }
  throw new PlugstreamError(
    'ERR_SOCKET_PATH',
    `endpoint has ${lengthBytes} bytes; the path of a unix socket has at most ${socketPathLimitBytes}: ${endpoint}`,
    { details: { field: 'endpoint', lengthBytes, limitBytes: socketPathLimitBytes } },
  )
}
