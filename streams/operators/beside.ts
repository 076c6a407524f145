import { concat, endWith, ignoreElements, merge, NEVER, takeWhile, type Observable } from 'rxjs'

const over = Symbol('over')

/**
 * Work, and what goes on beside it from before it begins until it ends: nothing of that is passed on but its failure, which ends the work.
 *
 * @example beside(hold$, concat(stop$, start$)) // held for as long as it takes
 */
export function beside<T>(other$: Observable<unknown>, work$: Observable<T>): Observable<T> {
  return merge(concat(other$, NEVER).pipe(ignoreElements()), work$.pipe(endWith(over))).pipe(
    takeWhile((value): value is Exclude<typeof value, typeof over> => value !== over),
  )
}
