import { Observable } from 'rxjs'

/**
 * What `lib` tells by events, as an Observable: subscribing starts to listen, unsubscribing stops. Never completes.
 *
 * @example listen<LinkState>((listener) => channel.onLink(listener))
 */
export function listen<T>(start: (listener: (value: T) => void) => () => void): Observable<T> {
  return new Observable<T>((subscriber) => start((value) => subscriber.next(value)))
}
