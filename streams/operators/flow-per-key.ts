import { defer, finalize, groupBy, mergeMap, of, Subject, type Observable, type OperatorFunction } from 'rxjs'

/**
 * Values flow in; what `flow` makes of the values of one key flows out, for all keys side by side. A flow hears every value of its
 * key from the first on, and lives until it completes by itself; the next value of that key then begins a new one.
 *
 * A group that ended with its last value would let the next flow begin while this one is still putting things away.
 */
export function flowPerKey<T, R>(
  keyOf: (value: T) => string,
  flow: (value$: Observable<T>, key: string) => Observable<R>,
): OperatorFunction<T, R> {
  return (source$) =>
    defer(() => {
      const ends = new Map<string, Subject<void>>()
      return source$.pipe(
        groupBy(keyOf, { duration: ({ key }) => ends.get(key) ?? of(undefined) }), // none: it ended as it began
        // Groups are hot: each is subscribed in the turn in which it comes, without a limit, or values are lost.
        mergeMap((value$) => {
          const end$ = new Subject<void>()
          ends.set(value$.key, end$)
          return flow(value$, value$.key).pipe(
            finalize(() => {
              ends.delete(value$.key)
              end$.next()
            }),
          )
        }),
      )
    })
}
