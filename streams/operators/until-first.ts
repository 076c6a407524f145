import { concat, EMPTY, ignoreElements, merge, NEVER, take, type Observable } from 'rxjs'

/**
 * Completes with the first value of `event$`, which is not passed on; its end does not count. `work$` begins once that is listened to, so
 * that an event which it causes at once is not missed; its values are passed on, and it is waited for too.
 *
 * @example untilFirst(stopped$, of(stopOrder))
 */
export function untilFirst<T = never>(event$: Observable<unknown>, work$: Observable<T> = EMPTY): Observable<T> {
  return merge(concat(event$, NEVER).pipe(take(1), ignoreElements()), work$)
}
