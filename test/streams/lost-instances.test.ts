import { throwError, type Observable } from 'rxjs'
import { defaultTiming } from '../../lib/defaults.js'
import type { PluginInfo, RegistryChange } from '../../lib/plugin/plugin.js'
import { lostInstances, type LostPorts } from '../../streams/lost-instances.js'
import type { ConnectionState, PluginInstance, TaskState } from '../../streams/values.js'
import { marbles } from '../testing/marbles.js'
import { lasting } from './support/connection.js'
import { connectionState, nobodyThere, pluginInfo, pluginInstance, registryEvent, taskState } from './support/values.js'

const plugin = pluginInfo()
const plugins: Record<string, PluginInfo> = { 1: plugin, 2: pluginInfo({ options: { taskName: 'other' } }) }
const states: Record<string, ConnectionState> = {
  m: nobodyThere(),
  x: nobodyThere({ reason: 'socket-refused' }),
  n: nobodyThere({ reason: 'not-ready', answers: true }),
  h: connectionState(),
}
const tasks: Record<string, TaskState> = {
  u: taskState({ phase: 'unknown', run: 0 }),
  p: taskState({ phase: 'starting', run: 0 }),
  x: taskState({ phase: 'exited', run: 0 }),
}
const lost: RegistryChange = {
  kind: 'deregister',
  ref: { type: 'csi-node', name: 'ebs', allocId: 'a1' },
  reason: 'lost',
}

function restored(overrides: Partial<PluginInstance> = {}): PluginInstance {
  return pluginInstance({ restored: true, plugin$: lasting(plugin), ...overrides })
}

/** Nothing is told of any task, unless it is given. */
function lostOf(
  instance$: Observable<PluginInstance>,
  taskOf: LostPorts['taskState'] = () => lasting(taskState({ phase: 'unknown', run: 0 })),
): Observable<RegistryChange> {
  return lostInstances(instance$, { taskState: taskOf }, defaultTiming)
}

describe('lostInstances', () => {
  it('never: gives up nothing where there is nothing', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const instance = cold<never>('-')
      expectObservable(lostOf(instance), '^ 61s !').toBe('-')
      expectSubscribed(instance, '           ^ 61s !')
    }))

  it('empty: ends with its source', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(lostOf(cold('--|'))).toBe('--|')
    }))

  it('one: gives up a restored instance that has not answered within a minute', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = restored({ state$: cold('m', states) })
      expectObservable(lostOf(cold('-i', { i: instance })), '^ 61s !').toBe('- 1m l', { l: lost })
    }))

  it('many: looks at each instance for itself', () =>
    marbles(({ cold, expectObservable }) => {
      const other = pluginInfo({ allocId: 'a2' })
      const instances = {
        i: restored({ state$: cold('m', states) }),
        h: restored({ state$: cold('h', states) }),
        j: { ...pluginInstance({ plugin: other }), restored: true },
      }
      expectObservable(lostOf(cold('ihj', instances)), '^ 61s !').toBe('1m l-k', {
        l: lost,
        k: { ...lost, ref: { type: 'csi-node', name: 'ebs', allocId: 'a2' } },
      })
    }))

  it('source error: passes it on and leaves the instances', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('m---', states)
      expectObservable(lostOf(cold('i-#', { i: restored({ state$: state }) }))).toBe('--#')
      expectSubscribed(state, '^-!')
    }))

  it('port error: gives up nothing of which it is not known whether a task claims it', () =>
    marbles(({ cold, expectObservable }) => {
      const instances = { i: restored(), j: restored({ plugin$: cold('2', plugins) }) }
      const taskOf: LostPorts['taskState'] = ({ options }) =>
        options['taskName'] === 'other' ? throwError(() => new Error('no')) : cold('u', tasks)
      expectObservable(lostOf(cold('ij', instances), taskOf), '^ 61s !').toBe('1m l', { l: lost })
    }))

  it('early unsubscribe: leaves the source, the instance and its task', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('m----', states)
      const task = cold(' u----', tasks)
      const gone = cold<never>('-----')
      const instance = cold('-i---', { i: restored({ state$: state, gone$: gone }) })
      expectObservable(
        lostOf(instance, () => task),
        '^--!',
      ).toBe('-')
      expectSubscribed(instance, '^--!')
      expectSubscribed(state, '   -^-!')
      expectSubscribed(gone, '    -^-!')
      expectSubscribed(task, '    -^-!')
    }))

  it('leaves an instance alone that was not restored', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('m', states)
      const instance = pluginInstance({ state$: state })
      expectObservable(lostOf(lasting(instance)), '^ 61s !').toBe('-')
      expectSubscribed(state)
    }))

  it('counts from when nothing is known, and on while one reason follows the other', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = restored({ state$: cold('10s m 20s x', states) })
      expectObservable(lostOf(lasting(instance)), '^ 61s !').toBe('1m l', { l: lost })
    }))

  it('counts anew once it has answered, if only that it is not ready', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = restored({ state$: cold('m 49999ms n 9999ms x', states) })
      expectObservable(lostOf(lasting(instance)), '^ 2m !').toBe('2m l', {
        l: lost,
      })
    }))

  it('gives up none that answers', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = restored({ state$: cold('m 1s h', states) })
      expectObservable(lostOf(lasting(instance)), '^ 10m !').toBe('-')
    }))

  it('gives up none that a task claims, now, later, or under another name', () =>
    marbles(({ cold, expectObservable }) => {
      const instance = restored({ plugin$: cold('1 30s 2', plugins) })
      const claimed = (task: string): Observable<RegistryChange> => lostOf(lasting(restored()), () => cold(task, tasks))
      expectObservable(claimed('p'), '^ 3m !').toBe('-')
      expectObservable(claimed('u 40s p'), '^ 3m !').toBe('-')
      expectObservable(claimed('u 40s x'), '^ 3m !').toBe('-')
      const renamed$ = lostOf(lasting(instance), ({ options }) =>
        cold(options['taskName'] === 'other' ? 'p' : 'u', tasks),
      )
      expectObservable(renamed$, '^ 3m !').toBe('-')
    }))

  it('gives up none that is gone', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = cold('m', states)
      const gone$ = cold('30s g', { g: registryEvent({ kind: 'deregistered' }) })
      expectObservable(lostOf(lasting(restored({ state$: state, gone$ }))), '^ 3m !').toBe('-')
      expectSubscribed(state, '^ 29999ms !')
    }))

  it('says so again every minute until it is gone, since the store may not have saved it', () =>
    marbles(({ cold, expectObservable }) => {
      const gone$ = cold('150s g', { g: registryEvent({ kind: 'deregistered' }) })
      expectObservable(lostOf(lasting(restored({ gone$ }))), '^ 5m !').toBe('1m l 59999ms l', { l: lost })
    }))
})
