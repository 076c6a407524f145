import {
  catchError,
  combineLatest,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  from,
  groupBy,
  ignoreElements,
  map,
  mergeMap,
  of,
  pairwise,
  ReplaySubject,
  retry,
  share,
  startWith,
  switchMap,
  take,
  takeUntil,
  takeWhile,
  tap,
  timer,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { storeRetryMaxMs, storeRetryMs, type Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { PluginIdentity } from '../lib/plugin/kind.js'
import { instanceKey, refOf, type PluginInfo, type RegistryChange, type RegistryEvent } from '../lib/plugin/plugin.js'
import type { ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'

export interface InstancePorts {
  /** The state of the task that serves an instance; present state first, and phase `unknown` where nothing was told of it. */
  taskState(plugin: PluginInfo): Observable<TaskState>
  /** What is known of the server behind a socket; present state first. Shared by all who ask for one target. */
  connection(target: ConnectionTarget): Observable<ConnectionState>
  /** Changes the registry; answers when saved. */
  apply(change: RegistryChange): ObservableInput<unknown>
}

/**
 * Registry events flow in (`registry.watch$`); one value per present instance flows out, with streams of its own.
 *
 * Before a new connection counts as healthy, the plugin is asked who it is: where another version answers, the registry is told
 * first, so that no healthy instance ever shows the version of a process that is gone.
 */
export function pluginInstances(
  registryEvent$: Observable<RegistryEvent>,
  ports: InstancePorts,
  timing: Pick<Timing, 'unhealthyBeatMs'>,
): Observable<PluginInstance> {
  return registryEvent$.pipe(
    groupBy((event) => instanceKey(event.plugin), {
      duration: (event$) => event$.pipe(filter(isGone)),
      connector: () => new ReplaySubject<RegistryEvent>(1),
    }),
    mergeMap((event$) =>
      event$.pipe(
        take(1),
        filter((first) => !isGone(first)),
        map((first) => instanceOf(first, event$, ports, timing)),
      ),
    ),
  )
}

function instanceOf(
  first: RegistryEvent,
  event$: Observable<RegistryEvent>,
  ports: InstancePorts,
  timing: Pick<Timing, 'unhealthyBeatMs'>,
): PluginInstance {
  const gone$ = event$.pipe(filter(isGone), take(1))
  const plugin$ = event$.pipe(
    takeWhile((event) => !isGone(event)),
    map((event) => event.plugin),
  )
  const socketPath$ = plugin$.pipe(
    map((plugin) => plugin.connection.socketPath),
    distinctUntilChanged(),
  )
  const task$ = plugin$.pipe(
    distinctUntilChanged((a, b) => a.options.taskName === b.options.taskName),
    switchMap((plugin) => ports.taskState(plugin)),
    distinctUntilChanged((a, b) => a.run === b.run && (a.phase === 'exited') === (b.phase === 'exited')),
  )
  const state$ = combineLatest([socketPath$, task$]).pipe(
    startWith(undefined),
    pairwise(),
    switchMap(([before, target]) => {
      if (target === undefined) return EMPTY
      const [socketPath, task] = target
      if (task.phase === 'exited') return of(exited(task))
      const state$ = ports.connection({ type: first.plugin.type, socketPath, run: task.run })
      // What was known is known of another server; after an exit that has been said already.
      return before && before[1].phase !== 'exited' ? concat(of(moved), state$) : state$
    }),
    identified(plugin$, ports, timing),
    catchError((failure: unknown) => of(broken(messageOf(failure)))),
    takeUntil(gone$),
    share({ connector: () => new ReplaySubject<ConnectionState>(1) }),
  )
  return { ref: refOf(first.plugin), restored: first.restored, plugin$, state$, gone$ }
}

/** Lets a healthy state pass once the plugin has said, over this very connection, who it is. */
function identified(
  plugin$: Observable<PluginInfo>,
  { apply }: InstancePorts,
  { unhealthyBeatMs }: Pick<Timing, 'unhealthyBeatMs'>,
): (state$: Observable<ConnectionState>) => Observable<ConnectionState> {
  return (state$) =>
    defer(() => {
      let known: ConnectionState | undefined
      const pass = (state: ConnectionState): Observable<ConnectionState> => of(state).pipe(tap(() => (known = state)))
      const asked = (state: ConnectionState): Observable<ConnectionState> =>
        combineLatest([from(state.connection?.identify() ?? EMPTY), plugin$.pipe(take(1))]).pipe(
          switchMap(([identity, plugin]) =>
            isSame(identity, plugin) ? pass(state) : updated(state, identity, plugin),
          ),
          catchError((failure: unknown) =>
            concat(
              of({ ...state, healthy: false, reason: 'probe-failed' as const, description: messageOf(failure) }),
              timer(unhealthyBeatMs).pipe(switchMap(() => asked(state))),
            ),
          ),
        )
      const updated = (
        state: ConnectionState,
        identity: PluginIdentity,
        plugin: PluginInfo,
      ): Observable<ConnectionState> => {
        const description = `${identity.provider} ${identity.version} answers now`
        const save$ = defer(() => apply({ kind: 'register', plugin: { ...plugin, ...identity } })).pipe(
          ignoreElements(),
        )
        return concat(
          of({ ...state, healthy: false, reason: 'socket-replaced' as const, description }),
          // A store that cannot save is no fault of the plugin: it is healthy meanwhile, and the save is tried again.
          save$.pipe(catchError(() => concat(of(state), save$.pipe(retry({ delay: storeRetryDelay }))))),
          pass(state),
        )
      }
      return state$.pipe(
        switchMap((state) =>
          !state.healthy || (known?.connection === state.connection && known?.epoch === state.epoch)
            ? of(state)
            : asked(state),
        ),
        distinctUntilChanged(),
      )
    })
}

function storeRetryDelay(_: unknown, count: number): Observable<unknown> {
  return timer(Math.min(storeRetryMs * 2 ** Math.min(count - 1, 20), storeRetryMaxMs))
}

function isGone(event: RegistryEvent): boolean {
  return event.kind === 'deregistered'
}

function isSame(identity: PluginIdentity, plugin: PluginInfo): boolean {
  return identity.version === plugin.version && identity.provider === plugin.provider
}

const moved: ConnectionState = {
  ...broken('it was told to be elsewhere; it has not answered there yet'),
  reason: 'socket-replaced',
}

function exited(task: TaskState): ConnectionState {
  return { ...broken(task.description), reason: 'task-exited' }
}

function broken(description: string): ConnectionState {
  return { healthy: false, reason: 'disconnected', description, answers: false, epoch: 0, connection: undefined }
}
