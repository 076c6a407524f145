import { elapsedMs } from '../clock.js'
import { volumeCallMarginMs } from '../defaults.js'
import { abortedError, invalidOption, PlugstreamError } from '../errors.js'
import { checkSignal } from '../options.js'
import type { VolumeCallOptions } from './volume.js'

/** The longest a timer of Node can wait, less a second. */
const longestTimeoutMs = 2_147_483_000

/** How long a piece of work may go on. */
export class Limits {
  /** What is being done, for the error where time runs out: as a function, where that changes meanwhile. */
  doing: string | (() => string)
  readonly signal: AbortSignal
  readonly #endAt: number
  #isFinished = false

  constructor(doing: string, signal: AbortSignal, endAt: number) {
    this.doing = doing
    this.signal = signal
    this.#endAt = endAt
  }

  /** The work is as good as done: from now on it is not given up any more. @throws where it was already. */
  finish(): void {
    this.signal.throwIfAborted()
    this.#isFinished = true
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  /** For the next call that is part of the work, and ends with it at the latest. */
  get call(): { signal: AbortSignal; timeoutMs: number } {
    const leftMs = Math.max(0, this.#endAt - elapsedMs())
    return { signal: this.signal, timeoutMs: Math.min(leftMs + volumeCallMarginMs, longestTimeoutMs) }
  }
}

/**
 * Does `work`, and rejects at once when its time is over, the caller gives up, or everything closes. The work hears of it by the signal
 * of its limits; it is not left alone: `unfinished` has it until it has ended.
 *
 * @throws ERR_OPTION_INVALID, ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED, and what `work` throws.
 */
export async function limited<T>(
  doing: string,
  { signal, timeoutMs }: VolumeCallOptions & { timeoutMs: number },
  closing: AbortSignal,
  unfinished: { add(work: Promise<unknown>): void },
  work: (limits: Limits) => Promise<T>,
): Promise<T> {
  checkSignal(signal)
  if (!(Number.isFinite(timeoutMs) && timeoutMs >= 1 && timeoutMs <= longestTimeoutMs))
    throw invalidOption('timeoutMs', timeoutMs, `a number of ms from 1 to ${longestTimeoutMs}`)
  const stop = new AbortController()
  const limits = new Limits(doing, stop.signal, elapsedMs() + timeoutMs)
  const end = ({ code, message, cause }: Pick<PlugstreamError, 'code' | 'message' | 'cause'>): void => {
    if (limits.isFinished) return
    const now = typeof limits.doing === 'string' ? limits.doing : limits.doing()
    const at = now === doing ? '' : ` (${now})`
    stop.abort(new PlugstreamError(code, `${message}${at}`, { cause, retryable: code === 'ERR_TIMEOUT' }))
  }
  const close = (): void => end(new PlugstreamError('ERR_CLOSED', `${doing}: the host was closed`))
  const abort = (): void => signal && end(abortedError(doing, signal))
  const timeout = (): void => end(new PlugstreamError('ERR_TIMEOUT', `${doing}: not within ${timeoutMs} ms`))
  if (closing.aborted) close()
  if (signal?.aborted) abort()
  const timer = setTimeout(timeout, timeoutMs)
  closing.addEventListener('abort', close)
  signal?.addEventListener('abort', abort)
  let stopped: (() => void) | undefined
  try {
    stop.signal.throwIfAborted()
    const over = new Promise<never>((_, reject) => {
      stopped = (): void => reject(stop.signal.reason as Error)
      stop.signal.addEventListener('abort', stopped)
    })
    const done = work(limits)
    unfinished.add(done)
    return await Promise.race([done, over])
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', close)
    signal?.removeEventListener('abort', abort)
    if (stopped) stop.signal.removeEventListener('abort', stopped)
  }
}
