import { expect } from 'chai'
import { map, NEVER, throwError, type Observable } from 'rxjs'
import { defaultTiming } from '../../lib/defaults.js'
import type { PluginFacts, PluginFingerprint } from '../../lib/plugin/fingerprint.js'
import type { PluginInfo, RegistryEvent } from '../../lib/plugin/plugin.js'
import { fingerprints } from '../../streams/fingerprints.js'
import type { ConnectionState, PluginInstance } from '../../streams/values.js'
import { marbles } from '../testing/marbles.js'
import { fakeConnection, inTurn, lasting } from './support/connection.js'
import {
  connectionState,
  nobodyThere,
  pluginFacts,
  pluginInfo,
  pluginInstance,
  registryEvent,
} from './support/values.js'

const plugin = pluginInfo()
const newer = pluginInfo({ version: '2.0.0' })
const plugins: Record<string, PluginInfo> = { 1: plugin, 2: newer }
const facts: Record<string, PluginFacts> = {
  a: pluginFacts(),
  b: pluginFacts({ node: { id: 'node-1', names: [], unknown: [], maxVolumes: 8 } }),
}
const gone = registryEvent({ kind: 'deregistered', plugin: newer, current: undefined, reason: 'stopping' })

function fingerprintsOf(instance$: Observable<PluginInstance>): Observable<PluginFingerprint> {
  return fingerprints(instance$, { now: () => 7 }, defaultTiming)
}

/** A healthy state over a connection of which these facts are read. */
function reading(fingerprint: () => Observable<PluginFacts>): ConnectionState {
  return connectionState({ connection: fakeConnection({ fingerprint }) })
}

/** Health, limit and version: `- none 1.0.0`, `+ 8 2.0.0`. */
function told(instance$: Observable<PluginInstance>): Observable<string> {
  return fingerprintsOf(instance$).pipe(
    map(
      ({ healthy, node, plugin: { version }, final }) =>
        `${healthy ? '+' : '-'} ${node ? (node.maxVolumes ?? 'any') : 'unread'} ${version}${final ? ' final' : ''}`,
    ),
  )
}

describe('fingerprints', () => {
  it('never: tells nothing where there is no instance', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const instance = cold<never>('-')
      expectObservable(fingerprintsOf(instance), '^--!').toBe('-')
      expectSubscribed(instance, '^--!')
    }))

  it('empty: ends with its source', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(fingerprintsOf(cold('--|'))).toBe('--|')
    }))

  it('one: reads what a healthy instance can do', () =>
    marbles(({ cold, expectObservable, flush }) => {
      const types: string[] = []
      const connection = fakeConnection({
        fingerprint: (type) => {
          types.push(type)
          return cold('--a', facts)
        },
      })
      const instance = pluginInstance({ state$: lasting(connectionState({ connection })) })
      expectObservable(fingerprintsOf(cold('-i', { i: instance })), '^----!').toBe('---f', {
        f: { ...facts['a'], plugin, healthy: true, healthDescription: 'healthy', updatedAt: 7, final: false },
      })
      flush()
      expect(types).to.deep.equal(['csi-node'])
    }))

  it('many: reads each instance for itself', () =>
    marbles(({ cold, expectObservable }) => {
      const instances = {
        i: pluginInstance({ state$: lasting(reading(() => cold('---a', facts))) }),
        j: pluginInstance({ plugin: newer, state$: lasting(reading(() => cold('b', facts))) }),
      }
      expectObservable(told(cold('ij', instances)), '^----!').toBe('-j-i', { i: '+ any 1.0.0', j: '+ 8 2.0.0' })
    }))

  it('source error: passes it on and leaves instance and reading', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const read = cold<PluginFacts>('-----a', facts)
      const state = cold('h----', { h: reading(() => read) })
      expectObservable(told(cold('i-#', { i: pluginInstance({ state$: state }) }))).toBe('--#')
      expectSubscribed(state, '^-!')
      expectSubscribed(read, ' ^-!')
    }))

  it('port error: passes on what the clock throws', () =>
    marbles(({ cold, expectObservable }) => {
      const now = (): never => {
        throw new Error('no time')
      }
      const instance = pluginInstance({ state$: lasting(reading(() => cold('-a', facts))) })
      expectObservable(fingerprints(cold('-i', { i: instance }), { now }, defaultTiming)).toBe(
        '--#',
        undefined,
        new Error('no time'),
      )
    }))

  it('early unsubscribe: leaves source, instance and reading', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const read = cold<PluginFacts>('-----a', facts)
      const state = cold('   h----', { h: reading(() => read) })
      const plugin = cold('  1----', plugins)
      const instance = cold('-i---', { i: pluginInstance({ state$: state, plugin$: plugin }) })
      expectObservable(told(instance), '^--!').toBe('-')
      expectSubscribed(instance, '^--!')
      expectSubscribed(state, '   -^-!')
      expectSubscribed(plugin, '  -^-!')
      expectSubscribed(read, '    -^-!')
    }))

  describe('a plugin that is outdated', () => {
    const outdated = {
      x: { type: 'csi-node', name: plugin.name },
      o: { type: 'csi-node', name: 'other' },
      c: { type: 'csi-controller', name: plugin.name },
    } as const
    /** Facts that are others at each reading, of which each takes a frame. */
    const told = (
      asks: string,
      state: string,
      unsubscribe: string,
      expected: string,
      subscribed = [unsubscribe],
    ): void =>
      marbles(({ cold, hot, expectObservable, expectSubscribed }) => {
        const limits = [undefined, 8, 7, 6, 5]
        let readings = 0
        const fingerprint = () =>
          cold('-f', {
            f: pluginFacts({ node: { id: 'n', names: [], unknown: [], maxVolumes: limits[++readings] ?? 0 } }),
          })
        const states = { h: reading(fingerprint), n: nobodyThere() }
        const asked = hot(asks, outdated)
        const instance = pluginInstance({ state$: cold(state, states) })
        const limit$ = fingerprints(lasting(instance), { now: () => 7, outdated$: asked }, defaultTiming).pipe(
          map(({ healthy, node }) => `${healthy ? '' : '-'}${node?.maxVolumes ?? ''}`),
        )
        expectObservable(limit$, unsubscribe).toBe(expected, { a: '8', b: '7', c: '6', A: '-8' })
        expectSubscribed(asked, ...subscribed)
      })

    it('is read again at once, and other plugins are not', () => told('---x-o-c-', 'h', '^--------!', '-a--b'))

    it('is read once more after a reading that is under way', () => told('---xx', 'h', '^-------!', '-a--bc'))

    it('is not read while nobody is there, and once when it is back', () =>
      told('---xx', 'h-n---h', '^---------!', '-aA----b', ['^-!', '------^---!']))
  })

  describe('an unhealthy instance', () => {
    it('has none before something was read', () =>
      marbles(({ cold, expectObservable }) => {
        const states = { m: nobodyThere(), x: nobodyThere({ reason: 'socket-refused' }) }
        const instance = pluginInstance({ state$: cold('m-x', states), plugin$: cold('1---2', plugins) })
        expectObservable(told(lasting(instance)), '^-----!').toBe('-')
      }))

    it('keeps what was last known, and says why', () =>
      marbles(({ cold, expectObservable }) => {
        const states = { h: reading(() => lasting(facts['b'] as PluginFacts)), x: nobodyThere() }
        const instance = pluginInstance({ state$: cold('h-x', states) })
        const fingerprint = { ...facts['b'], plugin, updatedAt: 7, final: false }
        expectObservable(fingerprintsOf(lasting(instance)), '^---!').toBe('h-x', {
          h: { ...fingerprint, healthy: true, healthDescription: 'healthy' },
          x: { ...fingerprint, healthy: false, healthDescription: 'there is no socket' },
        })
      }))

    it('is healthy again only once it was read over the connection it has by then', () =>
      marbles(({ cold, expectObservable }) => {
        const states = {
          h: reading(() => lasting(facts['a'] as PluginFacts)),
          x: nobodyThere(),
          k: reading(() => cold('---b', facts)),
        }
        const instance = pluginInstance({ state$: cold('h-x-k', states) })
        expectObservable(told(lasting(instance)), '^--------!').toBe('h-x----k', {
          h: '+ any 1.0.0',
          x: '- any 1.0.0',
          k: '+ 8 1.0.0',
        })
      }))
  })

  describe('a reading', () => {
    it('is made again over a connection made anew', () =>
      marbles(({ cold, expectObservable }) => {
        const read = inTurn<Observable<PluginFacts>>(cold('-a', facts), cold('-b', facts))
        const first = reading(read)
        const instance = pluginInstance({ state$: cold('h---k', { h: first, k: { ...first, epoch: 2 } }) })
        expectObservable(told(lasting(instance)), '^------!').toBe('-h---k', { h: '+ any 1.0.0', k: '+ 8 1.0.0' })
      }))

    it('is made again after 30 s, and tells nothing where nothing has changed', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const unchanged = cold<PluginFacts>('a', facts)
        const read = inTurn<Observable<PluginFacts>>(unchanged, unchanged, cold('b', facts))
        const instance = pluginInstance({ state$: lasting(reading(read)) })
        expectObservable(told(lasting(instance)), '^ 61s !').toBe('h 59999ms k', { h: '+ any 1.0.0', k: '+ 8 1.0.0' })
        flush()
        expect(unchanged.subscriptions.map(({ subscribedFrame }) => subscribedFrame)).to.deep.equal([0, 30_000])
      }))

    it('is made once more where it was lost', () =>
      marbles(({ cold, expectObservable }) => {
        const read = inTurn<Observable<PluginFacts>>(cold('-#'), cold('-a', facts))
        const instance = pluginInstance({ state$: lasting(reading(read)) })
        expectObservable(told(lasting(instance)), '^---!').toBe('--h', { h: '+ any 1.0.0' })
      }))

    it('that fails where nothing was read before is told with its error, and tried again after a second', () =>
      marbles(({ cold, expectObservable }) => {
        const failing = throwError(() => new Error('INTERNAL: no node'))
        const read = inTurn<Observable<PluginFacts>>(failing, failing, failing, failing, cold('a', facts))
        const instance = pluginInstance({ state$: lasting(reading(read)) })
        expectObservable(fingerprintsOf(lasting(instance)), '^ 3s !').toBe('x 1999ms h', {
          x: {
            requiresControllerPlugin: false,
            requiresTopologies: false,
            plugin,
            healthy: false,
            healthDescription: 'INTERNAL: no node',
            updatedAt: 7,
            final: false,
          },
          h: { ...facts['a'], plugin, healthy: true, healthDescription: 'healthy', updatedAt: 7, final: false },
        })
      }))

    it('that throws where it should answer is no different', () =>
      marbles(({ expectObservable }) => {
        const state = reading(() => {
          throw new Error('no such type')
        })
        expectObservable(told(lasting(pluginInstance({ state$: lasting(state) }))), '^ 3s !').toBe('x', {
          x: '- unread 1.0.0',
        })
      }))

    it('that fails later over the same connection changes nothing, and is tried again after a second', () =>
      marbles(({ cold, expectObservable }) => {
        const failing = throwError(() => new Error('busy'))
        const read = inTurn<Observable<PluginFacts>>(cold('a', facts), failing, failing, cold('b', facts))
        const instance = pluginInstance({ state$: lasting(reading(read)) })
        expectObservable(told(lasting(instance)), '^ 32s !').toBe('h 30999ms k', { h: '+ any 1.0.0', k: '+ 8 1.0.0' })
      }))

    it('that fails over a connection made anew leaves what was read over the old one, as unhealthy', () =>
      marbles(({ cold, expectObservable }) => {
        const failing = throwError(() => new Error('busy'))
        const first = reading(inTurn<Observable<PluginFacts>>(cold('b', facts), failing))
        const instance = pluginInstance({ state$: cold('h---k', { h: first, k: { ...first, epoch: 2 } }) })
        expectObservable(told(lasting(instance)), '^-----!').toBe('h---x', { h: '+ 8 1.0.0', x: '- 8 1.0.0' })
      }))

    it('is dropped with the connection it is made over', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const read = cold<PluginFacts>('----a', facts)
        const instance = pluginInstance({ state$: cold('h-x', { h: reading(() => read), x: nobodyThere() }) })
        expectObservable(told(lasting(instance)), '^------!').toBe('-')
        expectSubscribed(read, '^-!')
      }))
  })

  describe('an update', () => {
    it('is told with what is known', () =>
      marbles(({ cold, expectObservable }) => {
        const instance = pluginInstance({
          state$: lasting(reading(() => lasting(facts['a'] as PluginFacts))),
          plugin$: cold('1--2', plugins),
        })
        expectObservable(told(lasting(instance)), '^----!').toBe('a--b', { a: '+ any 1.0.0', b: '+ any 2.0.0' })
      }))

    it('that comes with doubt about the state is never shown healthy with what was read before', () =>
      marbles(({ hot, expectObservable }) => {
        const states = {
          h: reading(() => lasting(facts['a'] as PluginFacts)),
          x: nobodyThere({ reason: 'socket-replaced' }),
          k: reading(() => lasting(facts['b'] as PluginFacts)),
        }
        // in one turn: the state first, as an instance tells it
        const instance = pluginInstance({ state$: hot('h-x----k', states), plugin$: hot('1-2', plugins) })
        expectObservable(told(lasting(instance)), '^--------!').toBe('h-(xy)-k', {
          h: '+ any 1.0.0',
          x: '- any 1.0.0',
          y: '- any 2.0.0',
          k: '+ 8 2.0.0',
        })
      }))
  })

  describe('the last one', () => {
    const ending = (
      state$: Observable<ConnectionState>,
      gone$: Observable<RegistryEvent>,
    ): Observable<PluginInstance> => lasting(pluginInstance({ state$, gone$ }))

    it('is unhealthy, comes in the turn in which the instance goes, and nothing after it', () =>
      marbles(({ hot, cold, expectObservable, expectSubscribed }) => {
        const read = cold('a------', facts)
        const gone$ = hot('  ---g--', { g: gone }) // made first, so that it is the first of its turn
        const state$ = hot(' h--h-h', { h: reading(() => read) })
        const instance$ = ending(state$, gone$)
        const fingerprint = { ...facts['a'], updatedAt: 7 }
        expectObservable(fingerprintsOf(instance$), '^-----!').toBe('h--g', {
          h: { ...fingerprint, plugin, healthy: true, healthDescription: 'healthy', final: false },
          g: { ...fingerprint, plugin: newer, healthy: false, healthDescription: 'stopping', final: true },
        })
        expectSubscribed(read, '(^!)')
      }))

    it('does not come of an instance of which nothing was read', () =>
      marbles(({ cold, expectObservable }) => {
        expectObservable(told(ending(NEVER, cold('---g', { g: gone }))), '^-----!').toBe('-')
      }))
  })
})
