import { of, retry, throwError, type MonoTypeOperatorFunction } from 'rxjs'
import { lostCallTries } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'

/**
 * Makes a call again at once: one that failed, once; one that a connection lost, until it was made `lostCallTries` times. A connection
 * that closes says nothing of the server behind it.
 *
 * @example defer(() => connection.identify()).pipe(take(1), retryLostCall())
 */
export function retryLostCall<T>(): MonoTypeOperatorFunction<T> {
  return retry({
    count: lostCallTries - 1,
    delay: (failure: unknown, count) => (count === 1 || isLost(failure) ? of(0) : throwError(() => failure)),
  })
}

function isLost(failure: unknown): boolean {
  return failure instanceof PlugstreamError && failure.details['connectionLost'] === true
}
