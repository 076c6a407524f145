import { Observable } from 'rxjs'
import type { PluginChannel } from '../../../lib/plugin/kind.js'
import type { Connection } from '../../../streams/values.js'

/** A connection that is there and answers everything at once, unless told otherwise. Its answers have no end, so nobody may wait for it. */
export function fakeConnection(overrides: Partial<Connection> = {}): Connection {
  return {
    link$: lasting('connected'),
    answered: () => 0,
    probe: () => lasting({ kind: 'ready' }),
    identify: () => lasting({ provider: 'ebs.csi', version: '1.0.0' }),
    fingerprint: () => lasting({ requiresControllerPlugin: false, requiresTopologies: false }),
    channel: {} as PluginChannel,
    ...overrides,
  }
}

/** One value, and no end. */
export function lasting<T>(value: T): Observable<T> {
  return new Observable((subscriber) => subscriber.next(value))
}

/** What a port answers call by call; the last answer is for every further call. */
export function inTurn<T>(...answers: readonly [T, ...T[]]): () => T {
  let calls = 0
  return () => answers[Math.min(calls++, answers.length - 1)] as T
}
