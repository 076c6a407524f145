/** Every code a {@link PlugstreamError} can carry. The list is closed; the README describes each, and a test compares the two. */
export const errorCodes = [
  'ERR_OPTION_INVALID',
  'ERR_USAGE',
  'ERR_ABORTED',
  'ERR_TIMEOUT',
  'ERR_CLOSED',
  'ERR_STATE_LOCKED',
  'ERR_STORE_READ',
  'ERR_STORE_WRITE',
  'ERR_STORE_CORRUPT',
  'ERR_PLUGIN_UNKNOWN',
  'ERR_PLUGIN_CONFLICT',
  'ERR_PLUGIN_NOT_READY',
  'ERR_SOCKET_PATH',
  'ERR_SOCKET',
  'ERR_CSI_RPC',
  'ERR_CSI_UNSUPPORTED',
  'ERR_CSI_PROTOCOL',
  'ERR_VOLUME_BUSY',
  'ERR_MOUNT',
  'ERR_TASK_SPAWN',
  'ERR_CONTAINER',
  'ERR_FLEET',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export type ErrorDetails = Readonly<Record<string, string | number | boolean | undefined>>

/** What may be given with an error besides its code and message. */
export interface ErrorInit {
  cause?: unknown
  /** The same call, made again later, may succeed. Default: false. */
  retryable?: boolean
  details?: ErrorDetails
}

/**
 * The one error class of the library. Branch on `code`; `message` is for people, `details` for programs, `cause` keeps what was caught.
 * No secret is ever part of any of them.
 *
 * @example
 * try { await registry.register(plugin) } catch (e) { if (e instanceof PlugstreamError && e.code === 'ERR_STORE_WRITE') … }
 */
export class PlugstreamError extends Error {
  override readonly name = 'PlugstreamError'
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, init: ErrorInit = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause })
    this.code = code
    this.retryable = init.retryable ?? false
    this.details = init.details ?? {}
  }

  /**
   * The one conversion from whatever was caught. A PlugstreamError stays what it is; an abort becomes ERR_ABORTED and a timeout
   * ERR_TIMEOUT; everything else becomes `code`, with `doing` (what was tried) in front of the original message.
   */
  static from(thrown: unknown, code: ErrorCode, doing: string, init: Omit<ErrorInit, 'cause'> = {}): PlugstreamError {
    if (thrown instanceof PlugstreamError) return thrown
    if (isError(thrown, 'AbortError') || isError(thrown, 'TimeoutError'))
      return abortedError(doing, { reason: thrown }, init)
    return new PlugstreamError(code, `${doing}: ${messageOf(thrown)}`, { ...init, cause: thrown })
  }
}

/**
 * What a wait or a call fails with whose signal was aborted: ERR_TIMEOUT where the reason is that time ran out, as it is for
 * `AbortSignal.timeout`, and else ERR_ABORTED. The reason is its cause.
 */
export function abortedError(
  doing: string,
  { reason }: { readonly reason: unknown },
  init: Omit<ErrorInit, 'cause'> = {},
): PlugstreamError {
  const isTimeout =
    isError(reason, 'TimeoutError') || (reason instanceof PlugstreamError && reason.code === 'ERR_TIMEOUT')
  return isTimeout
    ? new PlugstreamError('ERR_TIMEOUT', `${doing}: timed out`, { ...init, cause: reason })
    : new PlugstreamError('ERR_ABORTED', `${doing}: aborted`, { ...init, cause: reason })
}

function isError(thrown: unknown, name: string): boolean {
  return thrown instanceof Error && thrown.name === name
}

/** The message of anything thrown, Error or not. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** A bad value at the door: names the field, the value and what is allowed. */
export function invalidOption(field: string, value: unknown, allowed: string): PlugstreamError {
  return new PlugstreamError('ERR_OPTION_INVALID', `${field} is ${show(value)}; it must be ${allowed}`, {
    details: { field },
  })
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}…` : value)
  if (value === null || typeof value !== 'object') return String(value)
  return Array.isArray(value) ? 'a list' : 'an object'
}
