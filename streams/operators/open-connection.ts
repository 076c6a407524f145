import { Observable } from 'rxjs'
import type { PluginChannel } from '../../lib/plugin/kind.js'
import type { Connection } from '../values.js'
import { abortable } from './abortable.js'
import { eachOf } from './each-of.js'
import { listen } from './listen.js'

/**
 * A channel as a value: opened when subscribed to, closed when left. `closing` is given the work of closing, which a teardown cannot
 * wait for, and what ends the calls that this work waits for.
 */
export function openConnection(
  open: () => PluginChannel,
  closing: (work: Promise<void>, end: () => void) => void = () => undefined,
): Observable<Connection> {
  return new Observable((subscriber) => {
    const channel = open()
    const watch = channel.watch?.bind(channel)
    subscriber.next({
      channel,
      link$: listen((listener) => channel.onLink(listener)),
      answered: () => channel.answered,
      probe: () => abortable((signal) => channel.probe(signal)),
      ...(watch && { watch: () => eachOf(watch) }),
      identify: () => abortable((signal) => channel.identify(signal)),
      fingerprint: (type) => abortable((signal) => channel.fingerprint(type, signal)),
    })
    return () => closing(channel.close(), () => channel.end?.())
  })
}
