import { defer, of, retry, throwError, type MonoTypeOperatorFunction } from 'rxjs'
import { lostCallTries } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'

/**
 * Makes a call again at once: one that a connection lost, until it was made `lostCallTries` times, since a connection that closes says
 * nothing of the server behind it; one that failed otherwise, once, since this process may have stood still until its deadline.
 *
 * @example defer(() => connection.identify()).pipe(take(1), retryLostCall())
 */
export function retryLostCall<T>(): MonoTypeOperatorFunction<T> {
  return (call$) =>
    defer(() => {
      let failedOtherwise = 0
      return call$.pipe(
        retry({
          count: lostCallTries - 1,
          delay: (failure: unknown) => (isLost(failure) || ++failedOtherwise === 1 ? of(0) : throwError(() => failure)),
        }),
      )
    })
}

function isLost(failure: unknown): boolean {
  return failure instanceof PlugstreamError && failure.details['connectionLost'] === true
}
