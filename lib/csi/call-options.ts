import { invalidOption } from '../errors.js'
import { checkSignal, fieldsOf, takeOptions } from '../options.js'
import type { CsiCallOptions } from './rpcs.js'

/** About 25 days: the longest a timer of Node can wait, in whole seconds, since servers are told of no smaller part of such a time. */
const longestTimeoutMs = 2_147_483_000

const fields = fieldsOf<CsiCallOptions>({ signal: true, timeoutMs: true })

/** @param own fields that there are besides. @throws ERR_OPTION_INVALID naming the option. */
export function checkOptions(options: CsiCallOptions, own: readonly string[] = []): void {
  const { signal, timeoutMs } = takeOptions('options', options, [...fields, ...own])
  checkSignal(signal)
  // A text would be added to the clock as one.
  const isTime = typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= longestTimeoutMs
  if (timeoutMs !== undefined && !isTime)
    throw invalidOption('timeoutMs', timeoutMs, `a number of ms from 1 to ${longestTimeoutMs}`)
}
