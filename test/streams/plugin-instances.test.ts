import { expect } from 'chai'
import {
  combineLatest,
  concat,
  EMPTY,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  Subject,
  tap,
  throwError,
  type Observable,
} from 'rxjs'
import { defaultTiming } from '../../lib/defaults.js'
import type { PluginIdentity } from '../../lib/plugin/kind.js'
import type { PluginInfo, RegistryChange, RegistryEvent } from '../../lib/plugin/plugin.js'
import { pluginInstances, type InstancePorts } from '../../streams/plugin-instances.js'
import type { ConnectionState, ConnectionTarget, PluginInstance, TaskState } from '../../streams/values.js'
import { marbles } from '../testing/marbles.js'
import { fakeConnection, inTurn, lasting } from './support/connection.js'
import { connectionState, nobodyThere, pluginInfo, registryEvent, taskState } from './support/values.js'

const plugin = pluginInfo()
const second = pluginInfo({ allocId: 'a2' })
const moved = pluginInfo({ connection: { socketPath: '/run/moved/csi.sock' } })
const newer = pluginInfo({ version: '2.0.0' })
const relabelled = pluginInfo({ options: { taskName: 'driver', zone: 'b' } })
const events: Record<string, RegistryEvent> = {
  r: registryEvent({ plugin }),
  R: registryEvent({ plugin: second }),
  t: registryEvent({ plugin, restored: true }),
  d: registryEvent({ kind: 'deregistered', plugin, current: undefined, reason: 'stopping' }),
  D: registryEvent({ kind: 'deregistered', plugin: second, current: undefined }),
  m: registryEvent({ kind: 'updated', plugin: moved }),
  v: registryEvent({ kind: 'updated', plugin: newer }),
  o: registryEvent({ kind: 'updated', plugin: relabelled }),
}
const tasks: Record<string, TaskState> = {
  u: taskState({ phase: 'unknown', run: 0 }),
  p: taskState({ phase: 'starting', run: 0 }),
  1: taskState({ run: 1 }),
  2: taskState({ run: 2 }),
  x: taskState({ phase: 'exited', run: 1, description: 'the task exited with code 1' }),
}
const identities = { 1: { provider: 'ebs.csi', version: '1.0.0' }, 2: { provider: 'ebs.csi', version: '2.0.0' } }

function instancesOf(
  event$: Observable<RegistryEvent>,
  ports: Partial<InstancePorts> = {},
): Observable<PluginInstance> {
  const unused = (): never => {
    throw new Error('the registry is not to be changed')
  }
  return pluginInstances(
    event$,
    { taskState: () => lasting(taskState()), connection: () => lasting(connectionState()), apply: unused, ...ports },
    defaultTiming,
  )
}

/** The states of all instances, by their reasons. */
function told(instance$: Observable<PluginInstance>): Observable<string> {
  return instance$.pipe(
    mergeMap(({ state$ }) => state$),
    map(({ reason }) => reason),
  )
}

/** A state together with the plugin it is said of, as the stages that follow see them: the state first where both change. */
function shown(instance$: Observable<PluginInstance>): Observable<string> {
  return instance$.pipe(
    mergeMap(({ state$, plugin$ }) => combineLatest([state$, plugin$])),
    map(([{ reason }, { version }]) => `${reason} ${version}`),
  )
}

/** A registry of which only `updated` is told, in the turn in which the change is saved. */
function registry(first: RegistryEvent): { event$: Observable<RegistryEvent>; save: (change: RegistryChange) => void } {
  const later$ = new Subject<RegistryEvent>()
  const save = (change: RegistryChange): void => {
    if (change.kind !== 'update') throw new Error('nothing is to be registered or deregistered')
    const { version, provider } = change
    later$.next(registryEvent({ kind: 'updated', plugin: { ...first.plugin, version, provider } }))
  }
  return { event$: concat(of(first), later$), save }
}

describe('pluginInstances', () => {
  it('never: gives no instance before one is registered', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold<never>('-')
      expectObservable(instancesOf(event), '^--!').toBe('-')
      expectSubscribed(event, '^--!')
    }))

  it('empty: ends with a registry that closes', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(instancesOf(cold('--|'))).toBe('--|')
    }))

  it('one: gives a registered instance with its plugin, its state and its end', () =>
    marbles(({ cold, expectObservable }) => {
      const instance$ = (): Observable<PluginInstance> => instancesOf(cold('-r--d', events))
      expectObservable(instance$().pipe(map(({ ref, restored }) => ({ ref, restored }))), '^----!').toBe('-i', {
        i: { ref: { type: 'csi-node', name: 'ebs', allocId: 'a1' }, restored: false },
      })
      expectObservable(instance$().pipe(mergeMap(({ plugin$ }) => plugin$)), '^----!').toBe('-p', { p: plugin })
      expectObservable(instance$().pipe(mergeMap(({ state$ }) => state$)), '^----!').toBe('-s', {
        s: connectionState(),
      })
      expectObservable(instance$().pipe(mergeMap(({ gone$ }) => gone$)), '^----!').toBe('----d', events)
    }))

  it('many: gives each instance once, and again when it is registered anew', () =>
    marbles(({ cold, expectObservable }) => {
      const instance$ = instancesOf(cold('r R m d D r|', events))
      expectObservable(instance$.pipe(map(({ ref }) => ref.allocId))).toBe('a b - - - a|', { a: 'a1', b: 'a2' })
    }))

  it('source error: passes it on, also to what is told of each instance', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const connection = cold('s---', { s: connectionState() })
      const instance$ = instancesOf(cold('r-#', events), { connection: () => connection })
      expectObservable(told(instance$)).toBe('s-#', { s: 'ready' })
      expectSubscribed(connection, '^-!')
    }))

  it('port error: a connection that fails is told, and asked for again after a second', () =>
    marbles(({ cold, expectObservable }) => {
      const connection = inTurn<Observable<ConnectionState>>(
        cold('--#', undefined, new Error('EMFILE')),
        cold('-s', { s: connectionState() }),
      )
      expectObservable(told(instancesOf(cold('r', events), { connection })), '^ 2s !').toBe('--x 1s r', {
        x: 'disconnected',
        r: 'ready',
      })
    }))

  it('port error: an instance whose task cannot be followed is told of as such, and the others are not', () =>
    marbles(({ cold, expectObservable }) => {
      const taskOf = ({ allocId }: PluginInfo): Observable<TaskState> =>
        allocId === 'a1' ? throwError(() => new Error('lost')) : lasting(taskState())
      const instance$ = instancesOf(cold('rR', events), { taskState: taskOf })
      expectObservable(told(instance$), '^---!').toBe('xs', { x: 'disconnected', s: 'ready' })
    }))

  it('early unsubscribe: leaves source, task state, connection and question', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold('      r----', events)
      const task = cold('       1----', tasks)
      const identity = cold<PluginIdentity>('---i')
      const connection = cold(' -s---', {
        s: connectionState({ connection: fakeConnection({ identify: () => identity }) }),
      })
      const instance$ = instancesOf(event, { taskState: () => task, connection: () => connection })
      expectObservable(told(instance$), '^--!').toBe('-')
      expectSubscribed(event, '      ^--!')
      expectSubscribed(task, '       ^--!')
      expectSubscribed(connection, ' ^--!')
      expectSubscribed(identity, '   -^-!')
    }))

  describe('an instance', () => {
    it('ends in all it tells in the turn in which it is deregistered, and leaves its connection', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold('s------', { s: connectionState() })
        const event$ = cold('    -r--d--', events)
        const end$ = ({ plugin$, state$, gone$ }: PluginInstance): Observable<unknown> =>
          concat(merge(plugin$, state$, gone$).pipe(mergeMap(() => EMPTY)), of('over'))
        const instance$ = instancesOf(event$, { connection: () => connection })
        expectObservable(instance$.pipe(mergeMap(end$)), '^------!').toBe('----o', { o: 'over' })
        expectSubscribed(connection, '-^--!')
      }))

    it('ends without a last word where the registry closes', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold('s-----', { s: connectionState() })
        const instance$ = instancesOf(cold('r--|', events), { connection: () => connection })
        const all$ = instance$.pipe(
          mergeMap(({ state$, gone$ }) => merge(state$, gone$.pipe(map(() => ({ reason: 'gone' }))))),
        )
        expectObservable(all$.pipe(map(({ reason }) => reason))).toBe('s--|', { s: 'ready' })
        expectSubscribed(connection, '^--!')
      }))

    it('that is registered anew in one turn is another one, to which nothing of the old is told', () =>
      marbles(({ cold, expectObservable }) => {
        const instance$ = instancesOf(cold('r-(dr)--d', events))
        const life$ = instance$.pipe(
          mergeMap(({ gone$ }, index) => concat(of(`born ${index}`), gone$.pipe(map(() => `gone ${index}`)))),
        )
        expectObservable(life$, '^---------!').toBe('a-(bc)--d', { a: 'born 0', b: 'gone 0', c: 'born 1', d: 'gone 1' })
      }))

    it('that comes as deregistered was none', () =>
      marbles(({ cold, expectObservable }) => {
        expectObservable(instancesOf(cold('d|', events))).toBe('-|')
      }))

    it('tells who comes late what is so now, and who comes too late that it is gone', () =>
      marbles(({ cold, hot, expectObservable }) => {
        const instances: PluginInstance[] = []
        const instance$ = instancesOf(hot('r-m---d--', events)).pipe(tap((instance) => instances.push(instance)))
        const late$ = (afterMs: string): Observable<string> =>
          cold(`${afterMs}(x|)`).pipe(
            mergeMap(() => instances),
            mergeMap(({ plugin$, gone$ }) =>
              merge(plugin$.pipe(map(({ connection }) => connection.socketPath)), gone$.pipe(map(({ kind }) => kind))),
            ),
          )
        expectObservable(instance$.pipe(mergeMap(() => EMPTY)), '^--------!').toBe('-')
        expectObservable(late$('---')).toBe('---m--(d|)', { m: '/run/moved/csi.sock', d: 'deregistered' })
        expectObservable(late$('-------')).toBe('-------(d|)', { d: 'deregistered' })
      }))

    it('says that it was restored', () =>
      marbles(({ cold, expectObservable }) => {
        expectObservable(instancesOf(cold('t|', events)).pipe(map(({ restored }) => restored))).toBe('r|', { r: true })
      }))
  })

  describe('its connection', () => {
    it('is the one to its socket and the present run of its task, and shared by all who follow it', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const targets: ConnectionTarget[] = []
        const connection = (target: ConnectionTarget): Observable<ConnectionState> => {
          targets.push(target)
          return lasting(connectionState())
        }
        const instance$ = instancesOf(cold('r', events), { connection })
        const twice$ = instance$.pipe(mergeMap(({ state$ }) => merge(state$, state$)))
        expectObservable(twice$.pipe(map(({ reason }) => reason)), '^--!').toBe('(ss)', { s: 'ready' })
        flush()
        expect(targets).to.deep.equal([{ type: 'csi-node', socketPath: '/run/a1/csi.sock', run: 1 }])
      }))

    it('is a new one where its socket moved, and nothing of the old counts', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const old = cold('  s-----', { s: connectionState() })
        const fresh = cold('--s---', { s: connectionState() })
        const connection = ({ socketPath }: ConnectionTarget): Observable<ConnectionState> =>
          socketPath === moved.connection.socketPath ? fresh : old
        expectObservable(told(instancesOf(cold('r--m', events), { connection })), '^------!').toBe('s--x-s', {
          s: 'ready',
          x: 'socket-replaced',
        })
        expectSubscribed(old, '  ^--!')
        expectSubscribed(fresh, '---^---!')
      }))

    it('is left alone where something else of its plugin changes', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold('s----', { s: connectionState() })
        const instance$ = instancesOf(cold('r-o-o', events), { connection: () => connection })
        expectObservable(told(instance$), '^-----!').toBe('s', { s: 'ready' })
        expectSubscribed(connection, '^-----!')
      }))

    it('is a new one where what its channel has to be told changes, and nothing else of its options', () =>
      marbles(({ cold, expectObservable, expectSubscribed, flush }) => {
        const targets: ConnectionTarget[] = []
        const old = cold('  s-----', { s: connectionState() })
        const fresh = cold('--s---', { s: connectionState() })
        const connection = (target: ConnectionTarget): Observable<ConnectionState> => {
          targets.push(target)
          return target.options?.['zone'] === 'b' ? fresh : old
        }
        const channelOptions = ({ options: { zone } }: PluginInfo): Record<string, string> => (zone ? { zone } : {})
        const others = {
          ...events,
          p: registryEvent({ kind: 'updated', plugin: pluginInfo({ options: { shelf: '1' } }) }),
        }
        expectObservable(told(instancesOf(cold('rp-o-o', others), { connection, channelOptions })), '^------!').toBe(
          's--x-s',
          { s: 'ready', x: 'socket-replaced' },
        )
        expectSubscribed(old, '  ^--!')
        expectSubscribed(fresh, '---^---!')
        flush()
        expect(targets.map(({ options }) => options)).to.deep.equal([{}, { zone: 'b' }])
      }))

    it('is had also where nothing is known of a task', () =>
      marbles(({ cold, expectObservable }) => {
        const instance$ = instancesOf(cold('r', events), { taskState: () => cold('u', tasks) })
        expectObservable(told(instance$), '^--!').toBe('s', { s: 'ready' })
      }))
  })

  describe('its task', () => {
    const answering = (): Observable<ConnectionState> => lasting(connectionState())

    it('that exits makes it unhealthy at once, also where the socket answers', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold('s-----', { s: connectionState() })
        const instance$ = instancesOf(cold('r', events), {
          taskState: () => cold('1--x', tasks),
          connection: () => connection,
        })
        expectObservable(instance$.pipe(mergeMap(({ state$ }) => state$)), '^-----!').toBe('s--x', {
          s: connectionState(),
          x: nobodyThere({ reason: 'task-exited', description: 'the task exited with code 1' }),
        })
        expectSubscribed(connection, '^--!')
      }))

    it('that starts again has a connection of its own, and nothing is told before that says something', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const runs: Record<number, Observable<ConnectionState>> = { 1: answering() }
        const fresh = cold('-s', { s: connectionState({ epoch: 2 }) })
        runs[2] = fresh
        const instance$ = instancesOf(cold('r', events), {
          taskState: () => cold('1--x--2', tasks),
          connection: ({ run }) => runs[run] ?? NEVER,
        })
        expectObservable(told(instance$), '^---------!').toBe('s--x---s', { s: 'ready', x: 'task-exited' })
        expectSubscribed(fresh, '------^---!')
      }))

    it('that started again without an exit told is another run all the same', () =>
      marbles(({ cold, expectObservable }) => {
        const runs: Record<number, Observable<ConnectionState>> = {
          1: answering(),
          2: cold('-s', { s: connectionState() }),
        }
        const instance$ = instancesOf(cold('r', events), {
          taskState: () => cold('1--2', tasks),
          connection: ({ run }) => runs[run] ?? NEVER,
        })
        expectObservable(told(instance$), '^------!').toBe('s--xs', { s: 'ready', x: 'socket-replaced' })
      }))

    it('that has exited before the instance came is known to have', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold<never>('-')
        const instance$ = instancesOf(cold('r', events), {
          taskState: () => cold('x', tasks),
          connection: () => connection,
        })
        expectObservable(told(instance$), '^--!').toBe('x', { x: 'task-exited' })
        expectSubscribed(connection)
      }))

    it('of which other things are told keeps its connection', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connection = cold('s-----', { s: connectionState() })
        const instance$ = instancesOf(cold('r', events), {
          taskState: () => cold('u-p', tasks),
          connection: () => connection,
        })
        expectObservable(told(instance$), '^-----!').toBe('s', { s: 'ready' })
        expectSubscribed(connection, '^-----!')
      }))

    it('is another one where the plugin is said to be served by another', () =>
      marbles(({ cold, expectObservable }) => {
        const adopted = registryEvent({ kind: 'updated', plugin: pluginInfo({ options: { taskName: 'other' } }) })
        const instance$ = instancesOf(cold('r--a', { ...events, a: adopted }), {
          taskState: ({ options }) => cold(options['taskName'] === 'other' ? 'x' : '1', tasks),
        })
        expectObservable(told(instance$), '^-----!').toBe('s--x', { s: 'ready', x: 'task-exited' })
      }))
  })

  describe('who answers', () => {
    it('is asked before the first healthy state passes', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const identity = cold<PluginIdentity>('--1', identities)
        const state = connectionState({ connection: fakeConnection({ identify: () => identity }) })
        const instance$ = instancesOf(cold('-r', events), { connection: () => lasting(state) })
        expectObservable(told(instance$), '^----!').toBe('---h', { h: 'ready' })
        expectSubscribed(identity, '-^-!')
      }))

    it('is told to the registry where it is another version, before the state passes for healthy', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const { event$, save } = registry(registryEvent({ plugin }))
        const connection = fakeConnection({ identify: () => lasting(identities[2]) })
        const changes: RegistryChange[] = []
        const apply = (change: RegistryChange): Observable<unknown> => {
          changes.push(change)
          return cold('--a').pipe(tap(() => save(change)))
        }
        const instance$ = instancesOf(event$, { connection: () => lasting(connectionState({ connection })), apply })
        expectObservable(shown(instance$), '^----!').toBe('--h', { h: 'ready 2.0.0' })
        flush()
        const ref = { type: 'csi-node', name: 'ebs', allocId: 'a1' }
        expect(changes).to.deep.equal([{ kind: 'update', ref, ...identities[2] }])
      }))

    it('is doubted before anybody hears of another version that was registered by hand', () =>
      marbles(({ cold, expectObservable }) => {
        const identify = inTurn<Observable<PluginIdentity>>(cold('-1', identities), cold('-----2', identities))
        const state = connectionState({ connection: fakeConnection({ identify }) })
        const instance$ = instancesOf(cold('r--v', events), { connection: () => lasting(state) })
        expectObservable(shown(instance$), '^---------!').toBe('-a-(xy)-h', {
          a: 'ready 1.0.0',
          x: 'socket-replaced 1.0.0',
          y: 'socket-replaced 2.0.0',
          h: 'ready 2.0.0',
        })
      }))
  })

  it('hears a hundred instances of one plugin each for itself', () =>
    marbles(({ expectObservable }) => {
      const event$ = new Subject<RegistryEvent>()
      const gone: string[] = []
      instancesOf(event$)
        .pipe(mergeMap(({ gone$ }) => gone$))
        .subscribe((event) => gone.push(event.plugin.allocId))
      const plugins = Array.from({ length: 100 }, (_, index) => pluginInfo({ allocId: `a${index}` }))
      for (const one of plugins) event$.next(registryEvent({ plugin: one }))
      for (const one of plugins) event$.next(registryEvent({ kind: 'deregistered', plugin: one }))
      expect(gone).to.deep.equal(plugins.map(({ allocId }) => allocId))
      expectObservable(EMPTY).toBe('|')
    }))
})
