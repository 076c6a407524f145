import {
  BehaviorSubject,
  defer,
  filter,
  ignoreElements,
  merge,
  NEVER,
  race,
  repeat,
  take,
  tap,
  timer,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { fieldsOf, takeOptions } from '../../lib/options.js'

export interface PollInit<T> {
  /** Pause after a look that came to `last`, in ms. */
  pauseMs: (last: T | undefined) => number
  /** Asks for a look without waiting for the pause to end. */
  ask$?: Observable<unknown> | undefined
}

const initFields = fieldsOf<PollInit<unknown>>({ pauseMs: true, ask$: true })

/**
 * Looks at once, and again after each pause; two looks never overlap, and the first value of a look is what it came to. An ask during
 * a pause ends the pause; an ask during a look is remembered, since that look may have seen the time before it: one more look follows
 * at once.
 *
 * @example poll(() => probe(), { pauseMs: (last) => (last?.healthy ? 4_000 : 1_000), ask$: connectionLost$ })
 */
export function poll<T>(look: () => ObservableInput<T>, init: PollInit<T>): Observable<T> {
  const { pauseMs, ask$ = NEVER } = takeOptions('init', init, initFields)
  return defer(() => {
    let last: T | undefined
    const asked$ = new BehaviorSubject(false)
    const looks$ = defer(() => {
      asked$.next(false)
      return look()
    }).pipe(
      take(1),
      tap((result) => (last = result)),
      repeat({ delay: () => race(timer(pauseMs(last)), asked$.pipe(filter(Boolean), take(1))) }),
    )
    return merge(
      ask$.pipe(
        tap(() => asked$.next(true)),
        ignoreElements(),
      ),
      looks$,
    )
  })
}
