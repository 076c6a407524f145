import {
  EmptyError,
  firstValueFrom,
  fromEvent,
  NEVER,
  of,
  race,
  switchMap,
  throwError,
  timeout,
  type Observable,
} from 'rxjs'
import { abortedError, invalidOption, PlugstreamError } from '../../lib/errors.js'
import { checkSignal, fieldsOf, takeOptions } from '../../lib/options.js'

export interface WaitOptions {
  signal?: AbortSignal | undefined
  /** Default: no limit. */
  timeoutMs?: number | undefined
}

/** The names of its fields. */
export const waitFields = fieldsOf<WaitOptions>({ signal: true, timeoutMs: true })

/** The longest a timer of Node can wait; with a longer time it fires at once. */
const longestTimeoutMs = 2 ** 31 - 1

/**
 * The first value of a stream as a promise. `waiting` says what for, in the message of the error.
 *
 * @throws ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED where the stream ends without a value, and ERR_OPTION_INVALID.
 */
export async function firstValue<T>(source$: Observable<T>, waiting: string, options: WaitOptions = {}): Promise<T> {
  const { signal, timeoutMs } = takeOptions('options', options, waitFields)
  checkSignal(signal)
  if (timeoutMs !== undefined && !(timeoutMs >= 0 && timeoutMs <= longestTimeoutMs))
    throw invalidOption('timeoutMs', timeoutMs, `a number of ms from 0 to ${longestTimeoutMs}, or left out`)
  const fail = (code: 'ERR_TIMEOUT' | 'ERR_CLOSED', why: string): PlugstreamError =>
    new PlugstreamError(code, `${waiting}: ${why}`)
  const aborted$: Observable<unknown> = !signal ? NEVER : signal.aborted ? of(undefined) : fromEvent(signal, 'abort')
  const failing$ = aborted$.pipe(switchMap(() => throwError(() => abortedError(waiting, signal as AbortSignal))))
  const limited$ =
    timeoutMs === undefined
      ? source$
      : source$.pipe(
          timeout({
            first: timeoutMs,
            with: () => throwError(() => fail('ERR_TIMEOUT', `not within ${timeoutMs} ms`)),
          }),
        )
  try {
    return await firstValueFrom(race(failing$, limited$))
  } catch (failure) {
    throw failure instanceof EmptyError ? fail('ERR_CLOSED', 'closed meanwhile') : failure
  }
}
