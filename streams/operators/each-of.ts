import { Observable } from 'rxjs'

/**
 * One reading of an async iterable per subscription: `open` gets a signal that is aborted when the subscriber leaves before the end, and
 * what it gives flows out. Nothing is asked for before the one before it has flowed out.
 *
 * @example eachOf((signal) => client.getMetadataAllocated({ snapshotId }, { signal }))
 */
export function eachOf<T>(open: (signal: AbortSignal) => AsyncIterable<T>): Observable<T> {
  return new Observable<T>((subscriber) => {
    const controller = new AbortController()
    let ended = false
    const read = async (): Promise<void> => {
      for await (const one of open(controller.signal)) {
        subscriber.next(one)
        if (subscriber.closed) return
      }
    }
    read().then(
      () => {
        ended = true
        subscriber.complete()
      },
      (failure: unknown) => {
        ended = true
        subscriber.error(failure)
      },
    )
    return () => {
      if (!ended) controller.abort()
    }
  })
}
