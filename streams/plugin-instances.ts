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
  merge,
  NEVER,
  of,
  pairwise,
  repeat,
  ReplaySubject,
  retry,
  share,
  shareReplay,
  startWith,
  switchMap,
  take,
  takeUntil,
  takeWhile,
  tap,
  throwError,
  type Observable,
  type ObservableInput,
  type OperatorFunction,
} from 'rxjs'
import type { Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { HealthReason } from '../lib/plugin/health.js'
import type { PluginIdentity } from '../lib/plugin/kind.js'
import { instanceKey, refOf, type PluginInfo, type RegistryChange, type RegistryEvent } from '../lib/plugin/plugin.js'
import { poll } from './operators/poll.js'
import { retryStoreWrite } from './operators/retry-store-write.js'
import type { Connection, ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'

export interface InstancePorts {
  /** The state of the task that serves an instance; present state first, and phase `unknown` where nothing was told of it. */
  taskState: (plugin: PluginInfo) => Observable<TaskState>
  /** What is known of the server behind a socket; present state first. Shared by all who ask for one target. */
  connection: (target: ConnectionTarget) => Observable<ConnectionState>
  /** Changes the registry; answers when saved. */
  apply: (change: RegistryChange) => ObservableInput<unknown>
}

type InstanceTiming = Pick<Timing, 'unhealthyBeatMs'>

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
  timing: InstanceTiming,
): PluginInstance {
  const gone$ = event$.pipe(filter(isGone))
  const ended$ = event$.pipe(ignoreElements(), endWith(true))
  const plugin$ = event$.pipe(
    filter((event) => !isGone(event)),
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
      const state$ = lasting(
        defer(() => ports.connection({ type: first.plugin.type, socketPath, run: task.run })),
        timing,
      )
      // What was known is known of another server; after an exit that has been said already.
      return before && before[1].phase !== 'exited' ? concat(of(moved), state$) : state$
    }),
    identified(plugin$, ports, timing),
    catchError((failure: unknown) => of(broken(messageOf(failure)))),
    takeUntil(ended$),
    share({ connector: () => new ReplaySubject<ConnectionState>(1) }),
  )
  return { ref: refOf(first.plugin), restored: first.restored, plugin$, state$, gone$ }
}

/** A connection that fails as such is asked for again: an instance is not to be given up for it. */
function lasting(
  state$: Observable<ConnectionState>,
  { unhealthyBeatMs }: InstanceTiming,
): Observable<ConnectionState> {
  return state$.pipe(
    catchError((failure: unknown) =>
      concat(
        of(broken(messageOf(failure))),
        throwError(() => failure),
      ),
    ),
    retry({ delay: unhealthyBeatMs }),
  )
}

/** Lets a healthy state pass once the plugin has said, over this very connection, who it is, and the registry was told. */
function identified(
  updated$: Observable<PluginInfo>,
  { apply }: InstancePorts,
  { unhealthyBeatMs }: InstanceTiming,
): OperatorFunction<ConnectionState, ConnectionState> {
  return (state$) =>
    defer(() => {
      const plugin$ = concat(updated$, NEVER).pipe(shareReplay({ bufferSize: 1, refCount: true }))
      const now$ = plugin$.pipe(take(1))
      /** The last state that was healthy, and the plugin it was said of. */
      let known: { state: ConnectionState; plugin: PluginInfo } | undefined

      const passed = (state: ConnectionState): Observable<ConnectionState> =>
        now$.pipe(
          tap((plugin) => (known = { state, plugin })),
          map(() => state),
        )
      const told = (state: ConnectionState, identity: PluginIdentity): Observable<ConnectionState> => {
        const save$ = now$.pipe(
          switchMap((plugin) => apply({ kind: 'register', plugin: { ...plugin, ...identity } })),
          take(1),
          ignoreElements(),
        )
        return concat(
          of(unlike(state, 'socket-replaced', `${identity.provider} ${identity.version} answers now`)),
          // A store that cannot save is no fault of the plugin: it is healthy meanwhile, and the save is tried again.
          save$.pipe(
            catchError(() =>
              concat(
                of(state),
                save$.pipe(
                  retryStoreWrite(),
                  catchError(() => NEVER),
                ),
              ),
            ),
          ),
          passed(state),
        )
      }
      const asked = (state: ConnectionState, connection: Connection): Observable<ConnectionState> =>
        poll(() => answerOf(connection), { pauseMs: () => unhealthyBeatMs }).pipe(
          takeWhile(({ identity }) => !identity, true),
          distinctUntilChanged((a, b) => !b.identity && a.failure === b.failure),
          switchMap(({ identity, failure }) =>
            identity
              ? now$.pipe(switchMap((plugin) => (isSame(identity, plugin) ? passed(state) : told(state, identity))))
              : of(unlike(state, 'probe-failed', failure)),
          ),
        )
      const confirmed = (state: ConnectionState, connection: Connection): Observable<ConnectionState> => {
        const isKnown = (plugin: PluginInfo): boolean =>
          known?.state.connection === connection && known.state.epoch === state.epoch && isSame(known.plugin, plugin)
        const changedByHand$ = plugin$.pipe(
          filter((plugin) => !isKnown(plugin)),
          take(1),
          map(({ version }) => unlike(state, 'socket-replaced', `it was registered anew as version ${version}`)),
        )
        return concat(
          now$.pipe(switchMap((plugin) => (isKnown(plugin) ? of(state) : asked(state, connection)))),
          changedByHand$,
        ).pipe(repeat())
      }
      const confirmed$ = state$.pipe(
        switchMap((state) => (state.healthy && state.connection ? confirmed(state, state.connection) : of(state))),
        distinctUntilChanged(),
      )
      // Listens from the start: who follows both hears of the doubt about a state before the plugin that raises it.
      return merge(confirmed$, plugin$.pipe(ignoreElements()))
    })
}

interface IdentityAnswer {
  identity?: PluginIdentity
  failure?: string
}

/** Who answers; asked once more where it fails, since a connection that closes may lose a call. */
function answerOf(connection: Connection): Observable<IdentityAnswer> {
  return defer(() => connection.identify()).pipe(
    take(1),
    retry(1),
    map((identity) => ({ identity })),
    catchError((failure: unknown) => of({ failure: messageOf(failure) })),
  )
}

function isGone(event: RegistryEvent): boolean {
  return event.kind === 'deregistered'
}

function isSame(a: PluginIdentity, b: PluginIdentity): boolean {
  return a.version === b.version && a.provider === b.provider
}

/** The same connection, and yet not healthy. */
function unlike(state: ConnectionState, reason: HealthReason, description = ''): ConnectionState {
  return { ...state, healthy: false, reason, description }
}

const moved: ConnectionState = {
  ...broken('it moved or was started again; it has not answered since'),
  reason: 'socket-replaced',
}

function exited(task: TaskState): ConnectionState {
  return { ...broken(task.description), reason: 'task-exited' }
}

function broken(description: string): ConnectionState {
  return { healthy: false, reason: 'disconnected', description, answers: false, epoch: 0, connection: undefined }
}
