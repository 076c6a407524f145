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
import { PlugstreamError } from '../../lib/errors.js'

export interface WaitOptions {
  signal?: AbortSignal
  /** Default: no limit. */
  timeoutMs?: number
}

/**
 * The first value of a stream as a promise. `waiting` says what for, in the message of the error.
 *
 * @throws ERR_TIMEOUT, ERR_ABORTED, and ERR_CLOSED where the stream ends without a value.
 */
export async function firstValue<T>(
  source$: Observable<T>,
  waiting: string,
  { signal, timeoutMs }: WaitOptions = {},
): Promise<T> {
  const fail = (code: 'ERR_TIMEOUT' | 'ERR_ABORTED' | 'ERR_CLOSED', why: string): PlugstreamError =>
    new PlugstreamError(code, `${waiting}: ${why}`, { cause: signal?.aborted ? signal.reason : undefined })
  const aborted$ = signal
    ? (signal.aborted ? of(undefined) : fromEvent(signal, 'abort')).pipe(
        switchMap(() => throwError(() => fail('ERR_ABORTED', 'aborted'))),
      )
    : NEVER
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
    return await firstValueFrom(race(aborted$, limited$))
  } catch (failure) {
    throw failure instanceof EmptyError ? fail('ERR_CLOSED', 'closed meanwhile') : failure
  }
}
