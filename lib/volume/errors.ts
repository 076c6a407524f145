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

/** The plugin has said what became of the call, be it that there is no such call. */
export function isFinalAnswer(thrown: unknown): boolean {
  if (!(thrown instanceof PlugstreamError)) return false
  const { code, details } = thrown
  const isAnswer = code === 'ERR_CSI_UNSUPPORTED' || code === 'ERR_CSI_PROTOCOL' || code === 'ERR_CSI_RPC'
  return isAnswer && details['outcome'] !== 'unknown' && details['sent'] !== false
}

/** What a call answers, or something else where the plugin does not advertise it. */
export async function unlessUnsupported<T, Other>(call: () => Promise<T>, otherwise: Other): Promise<T | Other> {
  try {
    return await call()
  } catch (failure) {
    if (isUnsupported(failure)) return otherwise
    throw failure
  }
}

/** The mount table says otherwise than the plugin. */
export function isMountError(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.code === 'ERR_MOUNT'
}

export function mountError(message: string, path: string, retryable = false): PlugstreamError {
  return new PlugstreamError('ERR_MOUNT', message, { retryable, details: { path } })
}
