import { concat, defer, retry, of, throwError, timer, catchError, type OperatorFunction } from 'rxjs'

/**
 * Whenever the source fails, says so with a value, and subscribes to it again after a pause.
 *
 * @param say - the value for a failure.
 * @param pauseMs - the pause after so many failures, of which this is the last.
 * @example look$.pipe(retrySaying((failure) => ({ healthy: false, description: messageOf(failure) }), () => 1_000))
 */
export function retrySaying<T, S>(
  say: (failure: unknown) => S,
  pauseMs: (failures: number, failure: unknown) => number,
): OperatorFunction<T, T | S> {
  return (source$) =>
    source$.pipe(
      catchError((failure: unknown) =>
        concat(
          defer(() => of(say(failure))),
          throwError(() => failure),
        ),
      ),
      // Counted over values, since what was said is one: `resetOnSuccess` would start anew each time.
      retry({ delay: (failure, failures) => timer(pauseMs(failures, failure)) }),
    )
}
