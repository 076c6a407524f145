import { Observable } from 'rxjs'

/**
 * One call per subscription: `call` gets a signal that is aborted when the subscriber leaves before the answer, and its result flows
 * out once. What a call settles to after that is nobody's business any more and is dropped.
 *
 * @example abortable((signal) => channel.probe(signal)).pipe(timeout(3_000))
 */
export function abortable<T>(call: (signal: AbortSignal) => Promise<T>): Observable<T> {
  return new Observable<T>((subscriber) => {
    const controller = new AbortController()
    let settled = false
    call(controller.signal).then(
      (value) => {
        settled = true
        subscriber.next(value)
        subscriber.complete()
      },
      (failure: unknown) => {
        settled = true
        subscriber.error(failure)
      },
    )
    return () => {
      if (!settled) controller.abort()
    }
  })
}
