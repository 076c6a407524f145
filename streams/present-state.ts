import { defer, filter, finalize, Observable, Subject, tap, type Subscription } from 'rxjs'

/** A stream of keyed values that also knows the newest value of each key. */
export interface PresentState<T> {
  /** The present value of every key, then each new one. */
  readonly all$: Observable<T>
  /** The present value of one key, if there is one, then each new one. */
  of(key: string): Observable<T>
  get(key: string): T | undefined
  /** Ends the feed and completes everything given out; nothing is known of any key after that. */
  readonly feed: Subscription
}

/**
 * Keeps the newest value of each key of `source$`, until one that `isLast` says is its last, so that who comes late starts from what
 * is true now.
 *
 * **Invariants.** A value that a subscriber causes, while another value is told or replayed, is told after it: to everybody in one
 * order, and to nobody twice. A subscriber that comes meanwhile has the value being told in its replay.
 */
export function presentState<T>(
  source$: Observable<T>,
  keyOf: (value: T) => string,
  isLast: (value: T) => boolean,
): PresentState<T> {
  const present = new Map<string, T>()
  const listeners = new Map<string, Subject<T>>()
  const live$ = new Subject<T>()
  const waiting: T[] = []
  let busy = false
  let telling: object | undefined // as long as a value is told: which one

  const inTurn = (work: () => void): void => {
    if (busy) return work()
    busy = true
    try {
      work()
      for (let value = waiting.shift(); value !== undefined; value = waiting.shift()) tell(value)
    } finally {
      busy = false
    }
  }
  const tell = (value: T): void => {
    const key = keyOf(value)
    if (isLast(value)) present.delete(key)
    else present.set(key, value)
    telling = {}
    listeners.get(key)?.next(value)
    live$.next(value)
    telling = undefined
  }
  const end = (): void => {
    for (const listener$ of [...listeners.values()]) listener$.complete()
    live$.complete()
  }
  const feed = source$.pipe(tap({ unsubscribe: () => present.clear() }), finalize(end)).subscribe((value) => {
    waiting.push(value)
    inTurn(() => undefined)
  })

  const replaying = (values: () => Iterable<T>, rest$: Observable<T>): Observable<T> =>
    new Observable<T>((subscriber) => {
      inTurn(() => {
        const heard = telling
        for (const value of [...values()]) subscriber.next(value)
        subscriber.add(rest$.pipe(filter(() => telling !== heard)).subscribe(subscriber))
      })
    })
  const liveOf = (key: string): Observable<T> =>
    defer(() => {
      if (feed.closed) return live$ // complete
      const listener$ = listeners.get(key) ?? new Subject<T>()
      listeners.set(key, listener$)
      return listener$.pipe(finalize(() => !listener$.observed && listeners.delete(key)))
    })
  const now = (key: string): T[] => (present.has(key) ? [present.get(key) as T] : [])
  return {
    all$: replaying(() => present.values(), live$),
    of: (key) => replaying(() => now(key), liveOf(key)),
    get: (key) => present.get(key),
    feed,
  }
}
