import {
  catchError,
  combineLatest,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  endWith,
  filter,
  ignoreElements,
  map,
  of,
  pairwise,
  ReplaySubject,
  share,
  startWith,
  switchMap,
  takeUntil,
  tap,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import type { Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { ChannelOptions, PluginIdentity } from '../lib/plugin/kind.js'
import { instanceKey, refOf, type PluginInfo, type RegistryChange, type RegistryEvent } from '../lib/plugin/plugin.js'
import { identified } from './operators/identified.js'
import { retrySaying } from './operators/retry-saying.js'
import type { ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'

export interface InstancePorts {
  /** The state of the task that serves an instance; present state first, and phase `unknown` where nothing was told of it. */
  taskState: (plugin: PluginInfo) => Observable<TaskState>
  /** What is known of the server behind a socket; present state first. Shared by all who ask for one target. */
  connection: (target: ConnectionTarget) => Observable<ConnectionState>
  /** What of an instance its channel has to be told, as in `ConnectionTarget.options`. Default: nothing. */
  channelOptions?: (plugin: PluginInfo) => ChannelOptions
  /** Changes the registry; answers when saved. */
  apply: (change: RegistryChange) => ObservableInput<unknown>
}

type InstanceTiming = Pick<Timing, 'unhealthyBeatMs' | 'probeTimeoutMs'>

/**
 * Registry events flow in (`registry.watch$`); one value per present instance flows out, with streams of its own.
 *
 * Before a new connection counts as healthy, the plugin is asked who it is: where another version answers, the registry is told
 * first, so that no healthy instance ever shows the version of a process that is gone.
 */
export function pluginInstances(
  registryEvent$: Observable<RegistryEvent>,
  ports: InstancePorts,
  timing: InstanceTiming,
): Observable<PluginInstance> {
  return defer(() => {
    // Not by groupBy: with a duration it ends a group before those in it hear the event that ends it.
    const present = new Map<string, ReplaySubject<RegistryEvent>>()
    const tellAll = (tell: (event$: ReplaySubject<RegistryEvent>) => void): void => [...present.values()].forEach(tell)
    return registryEvent$.pipe(
      map((event) => {
        const key = instanceKey(event.plugin)
        const known$ = present.get(key)
        const event$ = known$ ?? new ReplaySubject<RegistryEvent>(1)
        if (isGone(event)) present.delete(key)
        else present.set(key, event$)
        event$.next(event)
        if (isGone(event)) event$.complete()
        return known$ || isGone(event) ? undefined : instanceOf(event, event$, ports, timing)
      }),
      filter((instance) => instance !== undefined),
      tap({
        complete: () => tellAll((event$) => event$.complete()),
        error: (failure) => tellAll((event$) => event$.error(failure)),
      }),
    )
  })
}

function instanceOf(
  first: RegistryEvent,
  event$: Observable<RegistryEvent>,
  ports: InstancePorts,
  { unhealthyBeatMs, probeTimeoutMs }: InstanceTiming,
): PluginInstance {
  const ref = refOf(first.plugin)
  const update = ({ version, provider }: PluginIdentity): ObservableInput<unknown> =>
    ports.apply({ kind: 'update', ref, version, provider })
  const gone$ = event$.pipe(filter(isGone))
  const ended$ = event$.pipe(ignoreElements(), endWith(true))
  const plugin$ = event$.pipe(
    filter((event) => !isGone(event)),
    map((event) => event.plugin),
  )
  const place$ = plugin$.pipe(
    map((plugin): Place => {
      const options = ports.channelOptions?.(plugin)
      return { socketPath: plugin.connection.socketPath, ...(options && { options }) }
    }),
    distinctUntilChanged(isSamePlace),
  )
  const task$ = plugin$.pipe(
    distinctUntilChanged((a, b) => a.options.taskName === b.options.taskName),
    switchMap((plugin) => ports.taskState(plugin)),
    distinctUntilChanged((a, b) => a.run === b.run && (a.phase === 'exited') === (b.phase === 'exited')),
  )
  const state$ = combineLatest([place$, task$]).pipe(
    startWith(undefined),
    pairwise(),
    switchMap(([before, target]) => {
      if (target === undefined) return EMPTY
      const [place, task] = target
      if (task.phase === 'exited') return of(exited(task))
      const state$ = defer(() => ports.connection({ type: first.plugin.type, ...place, run: task.run })).pipe(
        retrySaying(broken, () => unhealthyBeatMs), // an instance is not to be given up for it
      )
      // What was known is known of another server; after an exit that has been said already.
      return before && before[1].phase !== 'exited' ? concat(of(nobody), state$) : state$
    }),
    identified({ plugin$, update, unhealthyBeatMs, probeTimeoutMs }),
    catchError((failure: unknown) => of(broken(failure))),
    takeUntil(ended$),
    share({ connector: () => new ReplaySubject<ConnectionState>(1) }),
  )
  return { ref, restored: first.restored, plugin$, state$, gone$ }
}

type Place = Pick<ConnectionTarget, 'socketPath' | 'options'>

/** Options are picked in one fixed order, so that their text tells whether they are the same. */
function isSamePlace(a: Place, b: Place): boolean {
  return JSON.stringify([a.socketPath, a.options]) === JSON.stringify([b.socketPath, b.options])
}

function isGone(event: RegistryEvent): boolean {
  return event.kind === 'deregistered'
}

const nobody: ConnectionState = {
  healthy: false,
  reason: 'socket-replaced',
  description: 'it moved or was started again; it has not answered since',
  answers: false,
  epoch: 0,
  connection: undefined,
}

function exited(task: TaskState): ConnectionState {
  return { ...nobody, reason: 'task-exited', description: task.description }
}

/** What should tell of it failed as such. */
function broken(failure: unknown): ConnectionState {
  return { ...nobody, reason: 'disconnected', description: messageOf(failure) }
}
