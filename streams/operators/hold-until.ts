import { concatMap, map, take, type MonoTypeOperatorFunction, type Observable } from 'rxjs'

/**
 * Holds every value back until `open$` has emitted, and lets it pass at once from then on. Order is kept, also for a value that
 * arrives while those held back are let go.
 *
 * @param open$ - replays: it is asked again for each value.
 */
export function holdUntil<T>(open$: Observable<unknown>): MonoTypeOperatorFunction<T> {
  return concatMap((value) =>
    open$.pipe(
      take(1),
      map(() => value),
    ),
  )
}
