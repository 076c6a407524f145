import * as defaults from '../defaults.js'

/** How often, and after which pauses, one sort of failure is tried again. */
export interface RetryRule {
  /** The first pause in ms; each following one is twice as long, up to the longest. */
  minDelayMs: number
  maxDelayMs: number
  /** How often at most; Infinity: as long as there is time. */
  retries: number
}

/** What is worth another try, by gRPC code. A code that is not here ends the call. */
export type RetryPolicy = Readonly<Partial<Record<string, RetryRule>>>

export const retryPolicy: RetryPolicy = defaults.csiRetries

/** One more failure of a call. */
export interface Failure {
  /** The gRPC code. */
  code: string
  /** How often the call has failed so before. */
  before: number
  /** How much of the caller's time is left, in ms. */
  leftMs: number
  /** In [0, 1). */
  random: number
}

/**
 * The pause in ms before a call is made again; undefined where it is not worth it, or there would be no time left. Chance takes up to
 * half of the pause: what failed together is not tried again together.
 *
 * @example retryDelayMs(retryPolicy, { code: 'INVALID_ARGUMENT', before: 0, leftMs: 10_000, random: 0 }) // undefined
 */
export function retryDelayMs(policy: RetryPolicy, { code, before, leftMs, random }: Failure): number | undefined {
  const rule = Object.hasOwn(policy, code) ? policy[code] : undefined
  if (!rule || before >= rule.retries) return undefined
  const longestMs = Math.min(rule.minDelayMs * 2 ** Math.min(before, 30), rule.maxDelayMs)
  const delayMs = Math.ceil(longestMs * (1 - random / 2))
  return delayMs < leftMs ? delayMs : undefined
}
