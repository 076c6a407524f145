import { ReplaySubject, share, type MonoTypeOperatorFunction } from 'rxjs'

/**
 * Subscribed to once, by the first who comes, and not left when the last has gone: for work that cannot be called back, and whose
 * result somebody has to put away. Whoever comes later hears its newest value and its end.
 *
 * @example const begun$ = defer(() => driver.start(spec)).pipe(outlive())
 */
export function outlive<T>(): MonoTypeOperatorFunction<T> {
  return share({
    connector: () => new ReplaySubject<T>(1),
    resetOnComplete: false,
    resetOnError: false,
    resetOnRefCountZero: false,
  })
}
