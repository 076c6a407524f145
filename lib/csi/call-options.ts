import { invalidOption } from '../errors.js'
import type { CsiCallOptions } from './rpcs.js'

/** About 25 days: the longest a timer of Node can wait, in whole seconds, since servers are told of no smaller part of such a time. */
const longestTimeoutMs = 2_147_483_000

/** @throws ERR_OPTION_INVALID naming the option. */
export function checkOptions({ signal, timeoutMs }: CsiCallOptions): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption('signal', signal, 'an AbortSignal')
  // A text would be added to the clock as one.
  const isTime = typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= longestTimeoutMs
  if (timeoutMs !== undefined && !isTime)
    throw invalidOption('timeoutMs', timeoutMs, `a number of ms from 1 to ${longestTimeoutMs}`)
}
