import { expect } from 'chai'
import { EMPTY, map, NEVER, of, startWith, Subject, type Observable } from 'rxjs'
import type { PluginFingerprint } from '../../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../../lib/plugin/health.js'
import type { NodeSnapshot } from '../../lib/plugin/node-snapshot.js'
import type { RegistryEvent } from '../../lib/plugin/plugin.js'
import { nodeSnapshots, type SnapshotSources } from '../../streams/node-snapshots.js'
import { marbles } from '../testing/marbles.js'
import { healthEvent, pluginFingerprint, pluginInfo, registryEvent } from './support/values.js'

const older = pluginInfo()
const newer = pluginInfo({ allocId: 'a2', version: '2.0.0' })
const other = pluginInfo({ allocId: 'a3', name: 'nfs' })
const updated = pluginInfo({ version: '1.0.1' })
const first = registryEvent({ plugin: older, seq: 1, at: 10 })
const events: Record<string, RegistryEvent> = {
  a: first,
  b: registryEvent({ plugin: newer, seq: 2, at: 20 }),
  c: registryEvent({ plugin: other, seq: 3, at: 30 }),
  u: registryEvent({ kind: 'updated', plugin: updated, current: newer, seq: 4, at: 40 }),
  y: registryEvent({ kind: 'deregistered', plugin: newer, current: older, seq: 5, at: 50 }),
  z: registryEvent({ kind: 'deregistered', plugin: older, current: undefined, seq: 6, at: 60 }),
}

function snapshotsOf(sources: Partial<SnapshotSources>): Observable<NodeSnapshot> {
  return nodeSnapshots(
    { registryEvent$: NEVER, health$: NEVER, fingerprint$: NEVER, ...sources },
    { now: () => 99 },
    { nodeId: 'node-1' },
  )
}

/** The version, then the allocs in order, the current ones marked. */
function told(sources: Partial<SnapshotSources>): Observable<string> {
  return snapshotsOf(sources).pipe(
    map(({ version, instances }) =>
      [version, ...instances.map(({ plugin, current }) => plugin.allocId + (current ? '*' : ''))].join(' '),
    ),
  )
}

describe('nodeSnapshots', () => {
  it('never: tells at once that nothing is there, and nothing more', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold<never>('-')
      expectObservable(snapshotsOf({ registryEvent$: event }), '^ 1s !').toBe('n', {
        n: { nodeId: 'node-1', version: 1, at: 99, seq: 0, instances: [] },
      })
      expectSubscribed(event, '^ 1s !')
    }))

  it('empty: ends with its sources', () =>
    marbles(({ cold, expectObservable }) => {
      const sources = {
        registryEvent$: cold<never>('-|'),
        health$: cold<never>('--|'),
        fingerprint$: cold<never>('---|'),
      }
      expectObservable(told(sources)).toBe('a--|', { a: '1' })
    }))

  it('one: tells of an instance, of which nothing is known yet', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = (description: string): Partial<NodeSnapshot> => ({
        instances: [
          { plugin: older, current: true, health: { healthy: false, reason: 'unknown', description, at: 10 } },
        ],
      })
      const restored = { ...first, restored: true }
      const start = { nodeId: 'node-1', version: 1, at: 99, seq: 0, instances: [] }
      expectObservable(snapshotsOf({ registryEvent$: cold('100ms a', events) }), '^ 1s !').toBe('n 99ms a', {
        n: start,
        a: { ...start, version: 2, seq: 1, ...instance('nothing is known of it yet') },
      })
      expectObservable(snapshotsOf({ registryEvent$: of(restored) }), '^ 1s !').toBe('a', {
        a: { ...start, seq: 1, ...instance('it was restored; nothing is known of it yet') },
      })
    }))

  it('many: tells all of them, the oldest first, and which are current', () =>
    marbles(({ cold, expectObservable }) => {
      const registryEvent$ = cold('100ms a 99ms b 99ms c 99ms y 99ms z', events)
      expectObservable(told({ registryEvent$ }), '^ 1s !').toBe('n 99ms a 99ms b 99ms c 99ms y 99ms z', {
        n: '1',
        a: '2 a1*',
        b: '3 a1 a2*',
        c: '4 a1 a2* a3*',
        y: '5 a1* a3*',
        z: '6 a3*',
      })
    }))

  it('source error: passes it on', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold('----', events)
      expectObservable(told({ registryEvent$: event, health$: cold('--#') })).toBe('n-#', { n: '1' })
      expectSubscribed(event, '^-!')
    }))

  it('port error: passes on what the clock throws', () =>
    marbles(({ expectObservable }) => {
      const now = (): never => {
        throw new Error('no time')
      }
      const sources = { registryEvent$: NEVER, health$: NEVER, fingerprint$: NEVER }
      expectObservable(nodeSnapshots(sources, { now }, { nodeId: 'n' })).toBe('#', undefined, new Error('no time'))
    }))

  it('early unsubscribe: leaves all sources, and tells nothing that waited', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold('      -a---', events)
      const health = cold<never>('-----')
      const print = cold<never>(' -----')
      const sources = { registryEvent$: event, health$: health, fingerprint$: print }
      expectObservable(told(sources), '^--!').toBe('n', { n: '1' })
      for (const source of [event, health, print]) expectSubscribed(source, '^--!')
    }))

  it('has what the sources tell as they are subscribed to in the first snapshot', () =>
    marbles(({ expectObservable }) => {
      const sources = {
        registryEvent$: of(first, events['b'] as RegistryEvent),
        health$: of(healthEvent({ plugin: newer, at: 25 })),
      }
      expectObservable(
        snapshotsOf(sources).pipe(map(({ instances }) => instances.map(({ health }) => health.reason))),
        '^--!',
      ).toBe('n', { n: ['unknown', 'ready'] })
    }))

  describe('the pace', () => {
    it('is the first change at once, then every further one within 50 ms', () =>
      marbles(({ cold, expectObservable }) => {
        const registryEvent$ = cold('100ms abcuyz', events)
        expectObservable(told({ registryEvent$ }), '^ 1s !').toBe('n 99ms a 49ms z', {
          n: '1',
          a: '2 a1*',
          z: '3 a3*',
        })
      }))

    it('is one snapshot in 50 ms under a flood, the last state never lost', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const flood$ = new Subject<HealthEvent>()
        const seen: [version: number, at: number][] = []
        const snapshot$ = snapshotsOf({ registryEvent$: of(first), health$: flood$ }).pipe(
          map(({ version, instances }) => {
            seen.push([version, instances[0]?.health.at ?? 0])
            return version
          }),
        )
        const beats$ = cold('a'.repeat(200) + '|').pipe(
          map((_, index) => flood$.next(healthEvent({ plugin: older, at: index + 1 }))),
        )
        expectObservable(snapshot$, '^ 1s !').toBe('a 49ms b 49ms c 49ms d 49ms e', { a: 1, b: 2, c: 3, d: 4, e: 5 })
        expectObservable(beats$.pipe(map(() => 'x'))).toBe('x'.repeat(200) + '|')
        flush()
        expect(seen.at(-1)).to.deep.equal([5, 200])
      }))

    it('does not keep back the last state where the sources end', () =>
      marbles(({ cold, expectObservable }) => {
        const registryEvent$ = cold('-b|', events).pipe(startWith(first))
        const sources = { registryEvent$, health$: EMPTY, fingerprint$: EMPTY }
        expectObservable(told(sources)).toBe('a 49ms (b|)', { a: '1 a1*', b: '2 a1 a2*' })
      }))
  })

  describe('an instance', () => {
    const last = (sources: Partial<SnapshotSources>): Observable<NodeSnapshot['instances'][number] | undefined> =>
      snapshotsOf(sources).pipe(map(({ instances }) => instances[0]))

    it('has its health and its fingerprint, and keeps them and its place over an update', () =>
      marbles(({ cold, expectObservable }) => {
        const fingerprint: PluginFingerprint = pluginFingerprint({ plugin: older })
        const sources = {
          registryEvent$: cold('-b 100ms u', events).pipe(startWith(first)),
          health$: cold('      -h', { h: healthEvent({ plugin: older, at: 15 }) }),
          fingerprint$: cold(' -f', { f: fingerprint }),
        }
        const health = { healthy: true, reason: 'ready' as const, description: 'ready', at: 15 }
        expectObservable(last(sources), '^ 1s !').toBe('a 49ms b 51ms c', {
          a: {
            plugin: older,
            current: true,
            health: { healthy: false, reason: 'unknown', description: 'nothing is known of it yet', at: 10 },
          },
          b: { plugin: older, current: false, health, fingerprint },
          c: { plugin: updated, current: false, health, fingerprint },
        })
      }))

    it('that is gone is not brought back by what is told of it later', () =>
      marbles(({ cold, expectObservable }) => {
        const sources = {
          registryEvent$: cold('100ms z', events).pipe(startWith(first)),
          health$: cold('       200ms h', { h: healthEvent({ plugin: older }) }),
          fingerprint$: cold('  200ms f', { f: pluginFingerprint({ plugin: older }) }),
        }
        expectObservable(told(sources), '^ 1s !').toBe('a 99ms z 99ms y 49ms x', {
          a: '1 a1*',
          z: '2',
          y: '3',
          x: '4',
        })
      }))

    it('that is registered anew does not have the last word of the one before', () =>
      marbles(({ cold, expectObservable }) => {
        const sources = {
          registryEvent$: cold('120ms (za)', events).pipe(startWith(first)),
          health$: cold('a 120ms d', {
            a: healthEvent({ plugin: older }),
            d: healthEvent({ plugin: older, healthy: false, reason: 'stopped', final: true }),
          }),
        }
        const reason$ = snapshotsOf(sources).pipe(map(({ instances }) => instances.map(({ health }) => health.reason)))
        expectObservable(reason$, '^ 1s !').toBe('a 49ms b 69ms c 49ms d', {
          a: ['unknown'],
          b: ['ready'],
          c: [],
          d: ['unknown'],
        })
      }))
  })

  it('counts for each subscriber by itself', () =>
    marbles(({ expectObservable }) => {
      const snapshot$ = told({ registryEvent$: of(first) })
      expectObservable(snapshot$, '^--!').toBe('a', { a: '1 a1*' })
      expectObservable(snapshot$, '-^--!').toBe('-a', { a: '1 a1*' })
    }))
})
