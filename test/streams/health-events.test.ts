import { EMPTY, map, merge, NEVER, ReplaySubject, type Observable } from 'rxjs'
import type { HealthEvent } from '../../lib/plugin/health.js'
import type { PluginInfo, RegistryEvent } from '../../lib/plugin/plugin.js'
import { healthEvents } from '../../streams/health-events.js'
import type { ConnectionState, PluginInstance } from '../../streams/values.js'
import { marbles } from '../testing/marbles.js'
import { lasting } from './support/connection.js'
import { connectionState, nobodyThere, pluginInfo, pluginInstance, registryEvent } from './support/values.js'

const plugin = pluginInfo()
const newer = pluginInfo({ version: '2.0.0' })
const plugins: Record<string, PluginInfo> = { 1: plugin, 2: newer }
const states: Record<string, ConnectionState> = {
  h: connectionState(),
  e: connectionState({ epoch: 2 }),
  m: nobodyThere(),
  x: nobodyThere({ reason: 'socket-refused', description: 'ECONNREFUSED' }),
  y: nobodyThere({ reason: 'socket-refused', description: 'ECONNREFUSED, again' }),
}
const gone: Record<string, RegistryEvent> = {
  g: registryEvent({ kind: 'deregistered', plugin, current: undefined, reason: 'stopping' }),
}

function eventsOf(instance$: Observable<PluginInstance>): Observable<HealthEvent> {
  let clock = 0
  return healthEvents(instance$, { now: () => ++clock })
}

/** Reason, and whether it is the last word. */
function told(instance$: Observable<PluginInstance>): Observable<string> {
  return eventsOf(instance$).pipe(map(({ reason, final }) => (final ? `${reason}, final` : reason)))
}

describe('healthEvents', () => {
  it('never: tells nothing where there is no instance', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const instance = cold<never>('-')
      expectObservable(eventsOf(instance), '^--!').toBe('-')
      expectSubscribed(instance, '^--!')
    }))

  it('empty: ends with its source', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(eventsOf(cold('--|'))).toBe('--|')
    }))

  it('one: tells nothing before something is known, then what', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = pluginInstance({ state$: cold('--h', states) })
      expectObservable(eventsOf(cold('-i', { i: instance })), '^----!').toBe('---h', {
        h: { plugin, healthy: true, reason: 'ready', description: 'ready', at: 1, final: false },
      })
    }))

  it('many: tells of each instance for itself', () =>
    marbles(({ cold, expectObservable }) => {
      const other = pluginInfo({ allocId: 'a2' })
      const instances = {
        i: pluginInstance({ state$: cold('h--x', states) }),
        j: pluginInstance({ plugin: other, state$: cold('m--h', states) }),
      }
      const event$ = eventsOf(cold('ij', instances)).pipe(map((event) => `${event.plugin.allocId} ${event.reason}`))
      expectObservable(event$, '^-----!').toBe('ab-cd', {
        a: 'a1 ready',
        b: 'a2 socket-missing',
        c: 'a1 socket-refused',
        d: 'a2 ready',
      })
    }))

  it('source error: passes it on and leaves the instances', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('h---', states)
      expectObservable(told(cold('i-#', { i: pluginInstance({ state$: state }) }))).toBe('h-#', { h: 'ready' })
      expectSubscribed(state, '^-!')
    }))

  it('port error: passes on what the clock throws', () =>
    marbles(({ cold, expectObservable }) => {
      const now = (): never => {
        throw new Error('no time')
      }
      const event$ = healthEvents(cold('-i', { i: pluginInstance({ state$: cold('-h', states) }) }), { now })
      expectObservable(event$).toBe('--#', undefined, new Error('no time'))
    }))

  it('early unsubscribe: leaves the source and the instances', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('  h----', states)
      const plugin = cold(' 1----', plugins)
      const end = cold<RegistryEvent>('-----')
      const instance = cold('-i---', { i: pluginInstance({ state$: state, plugin$: plugin, gone$: end }) })
      expectObservable(told(instance), '^--!').toBe('-h', { h: 'ready' })
      expectSubscribed(instance, '^--!')
      expectSubscribed(state, '   -^-!')
      expectSubscribed(plugin, '  -^-!')
      // once to end what is told, once for the last word
      expectSubscribed(end, '     -^-!', '-^-!')
    }))

  it('tells an edge: healthy or the reason changes, and nothing else does', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = pluginInstance({ state$: cold('h-e-x-y-m-h', states), plugin$: cold('1--2', plugins) })
      expectObservable(told(lasting(instance)), '^----------!').toBe('h---x---m-h', {
        h: 'ready',
        x: 'socket-refused',
        m: 'socket-missing',
      })
    }))

  it('tells it of the instance as it is by then', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = pluginInstance({ state$: cold('h---x', states), plugin$: cold('1--2', plugins) })
      const version$ = eventsOf(lasting(instance)).pipe(map((event) => event.plugin.version))
      expectObservable(version$, '^----!').toBe('a---b', { a: '1.0.0', b: '2.0.0' })
    }))

  describe('the last word', () => {
    it('comes in the turn in which the instance goes, and nothing after it', () =>
      marbles(({ hot, expectObservable }) => {
        const gone$ = hot('  ---g--', gone) // made first, so that it is the first of its turn
        const state$ = hot(' h--xmh', states)
        const plugin$ = hot('1--2--', plugins)
        const instance = pluginInstance({ state$, plugin$, gone$ })
        expectObservable(told(lasting(instance)), '^-----!').toBe('h--g', { h: 'ready', g: 'stopping, final' })
      }))

    it('comes also of an instance of which nothing was known', () =>
      marbles(({ cold, expectObservable }) => {
        const instance = pluginInstance({ state$: NEVER, gone$: cold('---(g|)', gone) })
        expectObservable(told(lasting(instance)), '^-----!').toBe('---g', { g: 'stopping, final' })
      }))

    it('does not come where the instance stays and the registry closes', () =>
      marbles(({ cold, expectObservable }) => {
        const instance = pluginInstance({
          state$: cold('h--|', states),
          plugin$: cold('1--|', plugins),
          gone$: cold('---|'),
        })
        expectObservable(told(cold('(i|)', { i: instance }))).toBe('h--|', { h: 'ready' })
      }))

    it('is there for who comes after the end', () =>
      marbles(({ cold, expectObservable }) => {
        const gone$ = new ReplaySubject<RegistryEvent>(1)
        gone$.next(gone['g'] as RegistryEvent)
        gone$.complete()
        const instance = pluginInstance({ state$: EMPTY, plugin$: EMPTY, gone$ })
        expectObservable(told(cold('-i', { i: instance })), '^--!').toBe('-g', { g: 'stopping, final' })
      }))

    const words: [string | undefined, HealthEvent['reason'], string][] = [
      ['stopping', 'stopping', 'its task is stopping'],
      ['stopped', 'stopped', 'its task has stopped'],
      ['task-exited', 'task-exited', 'its task exited and will not start again'],
      ['lost', 'lost', 'it was restored, no task claims it, and it did not answer'],
      ['configuration changed', 'deregistered', 'configuration changed'],
      ['ready', 'deregistered', 'ready'],
      ['toString', 'deregistered', 'toString'],
      [undefined, 'deregistered', 'it was deregistered'],
    ]
    for (const [given, reason, description] of words) {
      it(`is ${reason} where the registry was told ${given ?? 'nothing'}`, () =>
        marbles(({ cold, expectObservable }) => {
          const event = registryEvent({
            kind: 'deregistered',
            plugin: newer,
            ...(given !== undefined && { reason: given }),
          })
          const instance = pluginInstance({ gone$: cold('-g', { g: event }) })
          expectObservable(eventsOf(lasting(instance)), '^--!').toBe('-g', {
            g: { plugin: newer, healthy: false, reason, description, at: 1, final: true },
          })
        }))
    }
  })

  it('ends when its source has ended and every instance is gone', () =>
    marbles(({ cold, expectObservable }) => {
      const ending = pluginInstance({
        state$: cold('h----|', states),
        plugin$: cold('1----|', plugins),
        gone$: cold('  -----(g|)', gone),
      })
      expectObservable(merge(told(cold('(i|)', { i: ending })))).toBe('h----(g|)', { h: 'ready', g: 'stopping, final' })
    }))
})
