import { restartDefaults } from '../defaults.js'
import { invalidOption } from '../errors.js'
import { takeOptions } from '../options.js'
import { backoffMs, type Backoff } from './backoff.js'

/** What happens when a task ends without having been told to. */
export interface RestartPolicy extends Backoff {
  /**
   * `never`: it stays ended, and a restart asked for by supervision is not followed. `on-failure`: it starts again unless it ended
   * with code 0. `always`: it starts again.
   */
  mode: 'never' | 'on-failure' | 'always'
  /** How many restarts, whatever their cause, may fall into `windowMs`. One more, and the task is held until it is resumed by hand. */
  attempts: number
  /** The time those are counted in, in ms. Shorter than the longest pause, and the task is tried for ever. */
  windowMs: number
  /** A run that lasted this long, in ms, clears the count and the pause. One that was ended for being unhealthy does not. */
  stableMs: number
}

/** `always`, eight restarts in ten minutes, pauses from 0.1 to 30 seconds, stable after two minutes. */
export const defaultRestartPolicy: Readonly<RestartPolicy> = restartDefaults

/** What is remembered of a task's restarts; `freshHistory` is nothing. */
export interface RestartHistory {
  /** When it was restarted, Unix ms, as far as `windowMs` goes back. */
  restartedAt: readonly number[]
  /** Restarts since it was last stable: how far the pause has grown. */
  tries: number
}

export const freshHistory: RestartHistory = { restartedAt: [], tries: 0 }

/** A run has ended. */
export interface RunEnd {
  /** It could not begin, or ended otherwise than with code 0. */
  failed: boolean
  /** It was ended since supervision asked for a restart. */
  asked: boolean
  /** How long it ran; 0 where it could not begin. */
  ranMs: number
  /** Unix ms. */
  at: number
  /** In [0, 1). */
  random: number
}

export type RestartDecision =
  | { kind: 'restart'; delayMs: number; history: RestartHistory }
  | { kind: 'held'; reason: string; history: RestartHistory }
  | { kind: 'ended' }

/** The whole policy: pure, so that time and chance are what the caller says. */
export function decideRestart(policy: RestartPolicy, before: RestartHistory, end: RunEnd): RestartDecision {
  if (policy.mode === 'never' || (policy.mode === 'on-failure' && !end.failed && !end.asked)) return { kind: 'ended' }
  const stable = !end.asked && end.ranMs >= policy.stableMs
  const history = stable ? freshHistory : before
  const recent = history.restartedAt.filter((at) => at > end.at - policy.windowMs)
  if (recent.length >= policy.attempts) {
    const reason = `restarted ${count(recent.length, 'time')} in ${count(policy.windowMs / 1_000, 'second')}`
    return { kind: 'held', reason, history: { ...history, restartedAt: recent } }
  }
  return {
    kind: 'restart',
    delayMs: backoffMs(policy, history.tries, end.random),
    history: { restartedAt: [...recent, end.at], tries: history.tries + 1 },
  }
}

function count(amount: number, unit: string): string {
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}

/** Timers take no more: Node fires a longer one at once. */
const longestMs = 2 ** 31 - 1
const modes = ['never', 'on-failure', 'always']

const ranges: Readonly<Record<Exclude<keyof RestartPolicy, 'mode'>, [least: number, most: number, whole: boolean]>> = {
  attempts: [1, 1_000, true],
  windowMs: [1, longestMs, true],
  stableMs: [0, longestMs, true],
  minDelayMs: [0, longestMs, true],
  maxDelayMs: [0, longestMs, true],
  factor: [1, 100, false],
  jitter: [0, 1, false],
}

/**
 * Reads a policy of which any part may be left out.
 *
 * @throws ERR_OPTION_INVALID naming the field, its value and what is allowed; an unknown field is one.
 * @example readRestartPolicy({ mode: 'always', attempts: 3 })
 */
export function readRestartPolicy(given: unknown, field = 'restart'): RestartPolicy {
  if (given === undefined) return { ...defaultRestartPolicy }
  takeOptions(field, given, ['mode', ...Object.keys(ranges)], { below: field })
  const policy: Record<string, unknown> = { ...defaultRestartPolicy }
  for (const [name, value] of Object.entries(given as object) as [string, unknown][]) {
    if (value === undefined) continue
    if (name === 'mode') {
      if (!modes.includes(value as string)) throw invalidOption(`${field}.mode`, value, `one of ${modes.join(', ')}`)
    } else {
      readNumber(`${field}.${name}`, value, ranges[name as keyof typeof ranges])
    }
    policy[name] = value
  }
  const read = policy as unknown as RestartPolicy
  if (read.minDelayMs > read.maxDelayMs)
    throw invalidOption(`${field}.minDelayMs`, read.minDelayMs, `at most maxDelayMs (${read.maxDelayMs})`)
  return read
}

function readNumber(field: string, value: unknown, range: [number, number, boolean]): void {
  const [least, most, whole] = range
  const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))
  if (!fits) throw invalidOption(field, value, `a ${whole ? 'whole ' : ''}number from ${least} to ${most}`)
}
