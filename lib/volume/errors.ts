import { PlugstreamError } from '../errors.js'

/** A driver's NOT_FOUND. What it means is another question for each call. */
export function isNotFound(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.details['grpcCode'] === 'NOT_FOUND'
}

/** There is no room: of a node, where the call is to bring a volume there. */
export function isExhausted(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.details['grpcCode'] === 'RESOURCE_EXHAUSTED'
}

/** The plugin does not advertise the call, so it was not sent. */
export function isUnsupported(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.code === 'ERR_CSI_UNSUPPORTED'
}

/** The call may still be under way, or have been done. */
export function isUnknown(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.details['outcome'] === 'unknown'
}

/** The mount table says otherwise than the plugin. */
export function isMountError(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.code === 'ERR_MOUNT'
}

export function mountError(message: string, path: string, retryable = false): PlugstreamError {
  return new PlugstreamError('ERR_MOUNT', message, { retryable, details: { path } })
}
