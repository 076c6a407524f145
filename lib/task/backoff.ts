/** How a pause grows from one try to the next. */
export interface Backoff {
  /** The first pause, in ms. */
  minDelayMs: number
  /** No pause is longer, in ms. */
  maxDelayMs: number
  /** What each pause is multiplied with to give the next. */
  factor: number
  /** The share of a pause that chance may take away, 0 to 1: what failed together is not tried again together. */
  jitter: number
}

/** From here on every pause is the longest; beyond it the power would leave the range of numbers. */
const mostSteps = 30

/**
 * The pause before try number `tries` (0 is the first). `random` is in [0, 1); 0 gives the whole pause.
 *
 * @example backoffMs({ minDelayMs: 100, maxDelayMs: 30_000, factor: 3, jitter: 0 }, 2, 0) // 900
 */
export function backoffMs(backoff: Backoff, tries: number, random: number): number {
  const grownMs = backoff.minDelayMs * backoff.factor ** Math.min(tries, mostSteps)
  return Math.round(Math.min(grownMs, backoff.maxDelayMs) * (1 - backoff.jitter * random))
}
