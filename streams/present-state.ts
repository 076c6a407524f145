import {
  concat,
  defer,
  EMPTY,
  finalize,
  from,
  observeOn,
  queueScheduler,
  Subject,
  subscribeOn,
  type Observable,
  type Subscription,
} from 'rxjs'

/** A stream of keyed values that also knows the newest value of each key. */
export interface PresentState<T> {
  /** The present value of every key, then each new one. */
  readonly all$: Observable<T>
  /** The present value of one key, if there is one, then each new one. */
  of(key: string): Observable<T>
  get(key: string): T | undefined
  /** Ends the feed and completes everything given out. */
  readonly feed: Subscription
}

/**
 * Keeps the newest value of each key of `source$`, until one that `isLast` says is its last, so that who comes late starts from what
 * is true now. A value that a subscriber causes while another is told is told after it, to everybody in the same order.
 */
export function presentState<T>(
  source$: Observable<T>,
  keyOf: (value: T) => string,
  isLast: (value: T) => boolean,
): PresentState<T> {
  const present = new Map<string, T>()
  const listeners = new Map<string, { subject$: Subject<T>; count: number }>()
  const live$ = new Subject<T>()
  const tell = (value: T): void => {
    const key = keyOf(value)
    if (isLast(value)) present.delete(key)
    else present.set(key, value)
    listeners.get(key)?.subject$.next(value)
    live$.next(value)
  }
  const end = (): void => {
    for (const { subject$ } of [...listeners.values()]) subject$.complete()
    live$.complete()
  }
  const feed = source$.pipe(observeOn(queueScheduler), finalize(end)).subscribe(tell)

  const liveOf = (key: string): Observable<T> => {
    const listener = listeners.get(key) ?? { subject$: new Subject<T>(), count: 0 }
    listener.count += 1
    listeners.set(key, listener)
    return listener.subject$.pipe(finalize(() => --listener.count === 0 && listeners.delete(key)))
  }
  const now = (key: string): T[] => (present.has(key) ? [present.get(key) as T] : [])
  // Subscribing takes its turn in the queue as well: what the replay causes comes after it, and nothing falls between the two.
  const inTurn = (make: () => Observable<T>): Observable<T> => defer(make).pipe(subscribeOn(queueScheduler))
  return {
    all$: inTurn(() => concat(from([...present.values()]), live$)),
    of: (key) => inTurn(() => concat(from(now(key)), feed.closed ? EMPTY : liveOf(key))),
    get: (key) => present.get(key),
    feed,
  }
}
