import { elapsedMs, random } from '../clock.js'
import { PlugstreamError } from '../errors.js'
import type { PluginHeld } from '../plugin/kind.js'
import { untilLetGo } from './held-back.js'
import { retryDelayMs, type RetryPolicy } from './retry-policy.js'
import { outcomeOf } from './status.js'
import { within } from './within.js'

/** Where the attempts of a call go. */
export interface AttemptPorts<Target> {
  /** What the next attempt goes to. One and the same value stands for one and the same server. */
  pick: () => Target
  /** Resolves once the process behind a target that was picked before is gone; the signal ends the wait. Default: nobody can tell. */
  gone?: ((target: Target, signal: AbortSignal) => Promise<unknown>) | undefined
  /** Aborted when `pick` will give nothing any more: a pause ends at once, with what it throws then. Default: never. */
  closing?: AbortSignal | undefined
  /** Resolves when attempts that are held back may go on; nothing where they are not held. Default: they never are. */
  held?: PluginHeld | undefined
}

/** How long a call may go on. */
export interface CallBounds {
  signal?: AbortSignal | undefined
  /** For all attempts together. */
  timeoutMs: number
  /** For one of them. */
  attemptMs: number
  /** No attempt on another server while one before it may still be under way. */
  oneAtATime: boolean
  policy: RetryPolicy
}

type Attempt<Target, Answer> = (target: Target, timeoutMs: number) => Promise<Answer>

/**
 * Makes a call until it succeeds, fails for good, or its time is over. An attempt whose outcome is unknown is followed by one on another
 * server only when the process of the first is gone, or its deadline has passed.
 *
 * @param rpc what is called, for the words of errors.
 * @throws what `pick` throws at first; then what the last attempt failed with. `details` have the number of `attempts` where there was
 * more than one, and an `outcome` of `unknown` where one of them may still be under way.
 */
export async function withRetries<Target, Answer>(
  rpc: string,
  ports: AttemptPorts<Target>,
  bounds: CallBounds,
  attempt: Attempt<Target, Answer>,
): Promise<Answer> {
  const series = new Series(rpc, ports, bounds)
  for (;;) {
    try {
      return await series.try(attempt)
    } catch (error) {
      await series.pauseAfter(error)
    }
  }
}

class Series<Target> {
  readonly #rpc: string
  readonly #ports: AttemptPorts<Target>
  readonly #bounds: CallBounds
  readonly #endAt: number
  readonly #failures = new Map<string, number>()
  #attempts = 0
  #target: Target | undefined
  /** Where an attempt may still be under way, and until when. */
  #pending: { target: Target; until: number } | undefined
  #last: PlugstreamError | undefined

  constructor(rpc: string, ports: AttemptPorts<Target>, bounds: CallBounds) {
    this.#rpc = rpc
    this.#ports = ports
    this.#bounds = bounds
    this.#endAt = elapsedMs() + bounds.timeoutMs
  }

  async try<Answer>(attempt: Attempt<Target, Answer>): Promise<Answer> {
    const target = (this.#target = await this.#nextTarget())
    const leftMs = this.#leftMs()
    if (leftMs <= 0 && this.#last) throw this.#last
    const limitMs = Math.max(1, Math.min(leftMs, this.#bounds.attemptMs))
    const until = elapsedMs() + limitMs
    this.#attempts++
    try {
      return await attempt(target, limitMs)
    } catch (error) {
      const mayRun = outcomeOf(error) === 'unknown' && wasSent(error)
      if (mayRun && this.#bounds.oneAtATime)
        this.#pending = { target, until: Math.max(until, this.#pending?.until ?? 0) }
      throw error
    }
  }

  /** Resolves when it is time for another attempt. @throws the failure, in the place of all of them, where there will be none. */
  async pauseAfter(thrown: unknown): Promise<void> {
    const { signal, policy } = this.#bounds
    if (this.#attempts === 0) throw thrown
    const error = (this.#last = this.#told(thrown))
    const isOver = signal?.aborted || this.#ports.closing?.aborted
    const code = isOver ? undefined : this.#codeOf(error)
    if (code === undefined) throw error
    const before = this.#failures.get(code) ?? 0
    this.#failures.set(code, before + 1)
    const delayMs = retryDelayMs(policy, { code, before, leftMs: this.#leftMs(), random: random() })
    if (delayMs === undefined) throw error
    await this.#within(delayMs, (stop) => abortOf(this.#ports.closing, stop)).catch((failure: unknown) => {
      throw this.#told(failure)
    })
  }

  #within<T>(ms: number, work: (stop: AbortSignal) => Promise<T>): Promise<T | undefined> {
    return within(this.#rpc, ms, this.#bounds.signal, work)
  }

  #leftMs(): number {
    return this.#endAt - elapsedMs()
  }

  async #nextTarget(): Promise<Target> {
    const { gone } = this.#ports
    const target = await this.#pick()
    if (!this.#pending || this.#pending.target === target) return target
    const { target: old, until } = this.#pending
    const waitMs = Math.min(until, this.#endAt) - elapsedMs()
    // One that cannot tell does not end the wait.
    const untilGone = (stop: AbortSignal): Promise<unknown> => gone?.(old, stop).catch(never) ?? never()
    // A timer of Node may be a millisecond early.
    if (waitMs > 0) await this.#within(waitMs + 1, untilGone)
    this.#pending = undefined
    return this.#pick()
  }

  async #pick(): Promise<Target> {
    const { pick, held } = this.#ports
    if (held?.()) await untilLetGo(this.#rpc, held, { timeoutMs: this.#leftMs(), signal: this.#bounds.signal })
    return pick()
  }

  /** The code by which a failure is tried again. */
  #codeOf(error: PlugstreamError): string | undefined {
    const { code, details } = error
    if (code === 'ERR_CSI_RPC') return details['connectionLost'] ? 'UNAVAILABLE' : String(details['grpcCode'])
    return hasNone(error) || (code === 'ERR_CLOSED' && this.#isReplaced()) ? 'UNAVAILABLE' : undefined
  }

  /** Another target is to be had than the one that was closed, or none for now. */
  #isReplaced(): boolean {
    try {
      return this.#ports.pick() !== this.#target
    } catch (failure) {
      return hasNone(failure)
    }
  }

  /** A failure as what the whole call failed with: what an earlier attempt left unknown, one that never was an answer does not settle. */
  #told(thrown: unknown): PlugstreamError {
    const error = PlugstreamError.from(thrown, 'ERR_ABORTED', this.#rpc)
    const { code, message, cause, retryable, details } = error
    const isAnswer = code === 'ERR_CSI_PROTOCOL' || (code === 'ERR_CSI_RPC' && wasSent(error))
    const outcome = outcomeOf(isAnswer ? error : (this.#last ?? error))
    const attempts = this.#attempts
    if (attempts === 1 && outcome === outcomeOf(error)) return error
    const after = attempts === 1 ? '' : ` (after ${attempts} attempts)`
    return new PlugstreamError(code, `${message}${after}`, {
      cause,
      retryable,
      details: { rpc: this.#rpc, ...details, outcome, attempts },
    })
  }
}

/** Between two instances there may be none for a while. */
function hasNone(failure: unknown): boolean {
  const { code } = Object(failure) as { code?: unknown }
  return code === 'ERR_PLUGIN_NOT_READY' || code === 'ERR_PLUGIN_UNKNOWN'
}

/** Resolves when a signal is aborted, and listens to it no longer than to the end of the wait. */
function abortOf(signal: AbortSignal | undefined, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve()
    signal?.addEventListener('abort', () => resolve(), { signal: stop })
  })
}

const never = (): Promise<never> => new Promise(() => undefined)

/** Not where there was no connection to send it over, or it was not yet known whether it may be sent. */
function wasSent(error: unknown): boolean {
  return !(error instanceof PlugstreamError && error.details['sent'] === false)
}
