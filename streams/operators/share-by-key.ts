import { defer, finalize, ReplaySubject, share, type Observable } from 'rxjs'

/**
 * Turns `make` into a function that gives everybody who asks for one key the same running Observable, newest value first. It runs
 * from its first subscriber to its last, and leaves nothing behind.
 *
 * @example const connection = shareByKey(targetKey, (target) => connectionStates(...)) // both halves of a monolith share one probe loop
 */
export function shareByKey<K, T>(
  keyOf: (key: K) => string,
  make: (key: K) => Observable<T>,
): (key: K) => Observable<T> {
  const running = new Map<string, Observable<T>>()
  return (input) =>
    defer(() => {
      const key = keyOf(input)
      const present$ =
        running.get(key) ??
        make(input).pipe(
          finalize(() => running.delete(key)),
          share({ connector: () => new ReplaySubject<T>(1) }),
        )
      running.set(key, present$)
      return present$
    })
}
