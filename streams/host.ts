import {
  catchError,
  concat,
  concatMap,
  connectable,
  defer,
  EMPTY,
  filter,
  isObservable,
  map,
  mergeMap,
  NEVER,
  Observable,
  observeOn,
  of,
  queueScheduler,
  ReplaySubject,
  Subject,
  Subscription,
  switchMap,
  timer,
} from 'rxjs'
import { now } from '../lib/clock.js'
import { csiKind } from '../lib/csi/kind.js'
import { problemCount } from '../lib/defaults.js'
import { invalidOption, PlugstreamError } from '../lib/errors.js'
import { hostSettings, type HostOptions, type HostSettings } from '../lib/host/settings.js'
import { makeStateDir, storeFile } from '../lib/host/state-dir.js'
import { dial } from '../lib/plugin/dial.js'
import type { PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { PluginChannel, PluginKind, PluginTaskConfig } from '../lib/plugin/kind.js'
import type { NodeSnapshot } from '../lib/plugin/node-snapshot.js'
import {
  instanceKey,
  type PluginInfo,
  type PluginType,
  type RegistryChange,
  type RegistryEvent,
} from '../lib/plugin/plugin.js'
import { watchSocket } from '../lib/plugin/socket-watch.js'
import { validName } from '../lib/plugin/validate.js'
import type { SocketSight } from '../lib/plugin/socket.js'
import { logger } from '../lib/log.js'
import { Scope } from '../lib/scope.js'
import { lockStateDir } from '../lib/store/lock.js'
import { sqliteStore } from '../lib/store/sqlite-store.js'
import type { KeyvLike, StateStore } from '../lib/store/state-store.js'
import { TaskClaims } from '../lib/task/claims.js'
import { TaskDirectories } from '../lib/task/task-directories.js'
import { takeTask, takeTaskEvent, taskPlugin, type TaskPlugin } from '../lib/task/task-plugin.js'
import { taskKey, type PluginTask, type RestartRequest, type TaskEvent, type TaskNote } from '../lib/task/task.js'
import { Unfinished } from '../lib/unfinished.js'
import { connectionStates } from './connection-states.js'
import { edgeLines } from './edge-lines.js'
import { fingerprints } from './fingerprints.js'
import { healthEvents } from './health-events.js'
import type { HostPorts } from './host-ports.js'
import { lostInstances } from './lost-instances.js'
import { nodeSnapshots } from './node-snapshots.js'
import { abortable } from './operators/abortable.js'
import { firstValue, type WaitOptions } from './operators/first-value.js'
import { holdUntil } from './operators/hold-until.js'
import { listen } from './operators/listen.js'
import { openConnection } from './operators/open-connection.js'
import { shareByKey } from './operators/share-by-key.js'
import { pluginInstances } from './plugin-instances.js'
import { presentState } from './present-state.js'
import { Registry, type Dispensers } from './registry.js'
import { superviseTasks } from './supervise-tasks.js'
import { taskStates } from './task-states.js'
import type { ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'

/** What a host is opened with. */
export interface HostInit extends HostOptions {
  /**
   * What happens to the host's tasks: a stream, subscribed in the call itself, whose events wait until the host is open; or a
   * function that makes one, as `runTasks` does, called when the host is open. A source that ends or fails deregisters nothing.
   */
  task$: Observable<TaskEvent> | ((ports: HostPorts) => Observable<TaskEvent>)
  /** Default: Keyv on @keyv/sqlite in `stateDir`. One that is given is not closed by the host. */
  store?: KeyvLike | StateStore
  /** Default: each kind's client. */
  dispensers?: Dispensers
}

/** A running host. Its streams complete when it closes, and never fail. */
export interface PluginHost extends HostPorts, AsyncDisposable {
  readonly registry: Registry
  /** Present state of every instance first. */
  readonly health$: Observable<HealthEvent>
  /** Present state of every instance first. */
  readonly fingerprint$: Observable<PluginFingerprint>
  /** For the tasks' own event lists. */
  readonly note$: Observable<TaskNote>
  /** The whole node, newest first; then the first change at once, and at most every 50 ms. */
  readonly node$: Observable<NodeSnapshot>
  /** What went wrong in the host itself, newest 100 first: records, saves, sources. A sick plugin is none of it. */
  readonly problem$: Observable<PlugstreamError>
  /**
   * Resolves with an instance of a plugin as soon as there is one; with `healthy`, as soon as one is healthy.
   * @throws ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED.
   */
  waitFor(type: PluginType, name: string, options?: WaitOptions & { healthy?: boolean }): Promise<PluginInfo>
  /**
   * A client bound to the name of a plugin: each call goes to its newest healthy instance, else to its newest.
   * @throws ERR_PLUGIN_UNKNOWN where no kind has this type. Its calls reject with ERR_PLUGIN_UNKNOWN where there is no instance, and
   * ERR_PLUGIN_NOT_READY where none is connected.
   */
  client<T>(type: PluginType, name: string): T
  /** Ends everything the host began; deregisters nothing. Idempotent. */
  close(): Promise<void>
}

/**
 * Opens a host: takes the state directory, restores the registry, and joins the stages into one river.
 *
 * @throws ERR_OPTION_INVALID naming the field, ERR_STATE_LOCKED where another host has the directory, ERR_STORE_READ.
 * @example
 * await using host = await openHost({ stateDir: '/var/lib/agent', task$: (ports) => runTasks(spec$, processDriver(), ports) })
 * host.health$.subscribe((h) => console.log(h.plugin.name, h.healthy, h.reason))
 */
export async function openHost(init: HostInit): Promise<PluginHost> {
  const settings = hostSettings(init, ({ rpcTimeoutMs }) => [csiKind({ rpcTimeoutMs })])
  const { task$ } = init
  if (!isObservable(task$) && typeof task$ !== 'function')
    throw invalidOption('task$', task$, 'an Observable of task events, or a function that makes one')
  const scope = new Scope()
  try {
    return await open(init, settings, scope)
  } catch (failure) {
    await scope.close()
    throw failure
  }
}

async function open(init: HostInit, settings: HostSettings, scope: Scope): Promise<PluginHost> {
  const { stateDir, nodeId, kinds, timing } = settings
  const problem$ = new ReplaySubject<PlugstreamError>(problemCount)
  const opened$ = new ReplaySubject<true>(1)
  const taskEvent$ = new Subject<TaskEvent>()
  const restart$ = new Subject<RestartRequest>()
  const note$ = new Subject<TaskNote>()
  const node$ = new ReplaySubject<NodeSnapshot>(1)
  const runners = new Unfinished()
  const unfinished = new Unfinished()
  const claims = new TaskClaims()
  const told = (failure: unknown, doing: string): Observable<never> => {
    problem$.next(PlugstreamError.from(failure, 'ERR_USAGE', doing))
    return EMPTY
  }
  const pluginOf = (task: PluginTask): TaskPlugin | undefined => {
    const plugin = taskPlugin(kinds, stateDir, task)
    if (plugin) claims.claim(task, plugin.refs)
    return plugin
  }
  const directories = new TaskDirectories({ stateDir, dial })
  const ports: HostPorts = {
    prepare: async (task) => {
      if (scope.closed) throw closed()
      const own = takeTask(task)
      return directories.prepare(own, settingsOf(pluginOf(own)))
    },
    restart$: restart$.asObservable(),
    waitOnClose: (work) => runners.add(work),
    problem: (failure) => problem$.next(failure),
  }

  // Closing runs upwards: the intake first, then the river, the channels and runners, the registry, the store, and the lock last.
  const rest = new Scope()
  scope.add(() => rest.close())

  // Tasks: what comes in before the river runs waits for it; a source that ends or fails ends nothing.
  const { task$ } = init
  const source$ = isObservable(task$) ? task$ : opened$.pipe(switchMap(() => task$(ports)))
  const intake = concat(source$.pipe(catchError((failure: unknown) => told(failure, 'task$ failed'))), NEVER)
    .pipe(
      // Taken as they are when they come: their giver may use the object again.
      concatMap((event) =>
        defer(() => of(takeTaskEvent(event))).pipe(
          catchError((failure: unknown) => told(failure, 'a task event was left out')),
        ),
      ),
      holdUntil(opened$),
      observeOn(queueScheduler),
    )
    .subscribe(taskEvent$)
  scope.add(() => intake.unsubscribe())

  // Registry: one host a directory, and everything restored before anything flows.
  await makeStateDir(stateDir)
  const lock = await lockStateDir(stateDir)
  rest.add(() => lock.release())
  const store = init.store === undefined ? await ownStore(stateDir, rest) : init.store
  const pick = (instances: readonly PluginInfo[], what: string): PluginChannel => {
    if (scope.closed) throw closed()
    if (instances.length === 0) throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `${what} is not registered`)
    const states = instances.map((plugin) => reached.get(instanceKey(plugin))?.state)
    const { connection } = states.find((state) => state?.healthy) ?? states[0] ?? {}
    if (connection) return connection.channel
    const why = states[0]?.description ?? 'nothing is known of it yet'
    throw new PlugstreamError('ERR_PLUGIN_NOT_READY', `${what} cannot be called: ${why}`, { retryable: true })
  }
  const clientOf = (type: PluginType, what: string, instances: () => readonly PluginInfo[]): unknown => {
    const kind = kindOf(kinds, type)
    if (kind.client) return kind.client(() => pick(instances(), what))
    throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `the plugin kind of ${type} has no client`)
  }
  const dispensers: Dispensers = Object.fromEntries(
    kinds
      .filter((kind) => kind.client !== undefined)
      .flatMap(({ types }) => types)
      .map((type) => [type, (plugin: PluginInfo) => clientOf(type, words(plugin), () => [plugin])]),
  )
  const registry = await Registry.open({
    store,
    dispensers: { ...dispensers, ...init.dispensers },
    closeTimeoutMs: timing.closeTimeoutMs,
  })
  rest.add(() => registry.close())
  rest.add(() => runners.settled())
  rest.add(() => {
    unfinished.add(directories.idle())
    return unfinished.settled(timing.closeTimeoutMs)
  })

  // The river. Task state before health before supervision, so that each finds in the one before it what an event has changed.
  const river = new Subscription()
  rest.add(() => river.unsubscribe())
  const tasks = presentState(taskStates(taskEvent$), taskKey, ({ state }) => state.phase === 'stopped')
  const taskState = ({ allocId, options: { taskName = '' } }: PluginInfo): Observable<TaskState> => {
    const key = taskKey({ allocId, taskName })
    return concat(tasks.get(key) ? EMPTY : of(untold), tasks.of(key).pipe(map(({ state }) => state)))
  }
  const connection = shareByKey(
    ({ socketPath, run }: ConnectionTarget) => JSON.stringify([socketPath, run]),
    ({ type, socketPath }) =>
      connectionStates(
        listen<SocketSight>((listener) => watchSocket(socketPath, listener)),
        {
          connect: () =>
            openConnection(
              () => kindOf(kinds, type).open(socketPath),
              (work) => unfinished.add(work),
            ),
          dial: () => abortable((signal) => dial(socketPath, signal)),
        },
        timing,
      ),
  )
  const apply = (change: RegistryChange): Observable<RegistryEvent | undefined> => defer(() => registry.apply(change))
  const instance$ = connectable(pluginInstances(registry.watch$, { taskState, connection, apply }, timing))
  const health = presentState(healthEvents(instance$, { now }), keyOfEvent, isFinal)
  const fingerprint = presentState(fingerprints(instance$, { now }, timing), keyOfEvent, isFinal)
  const reached = presentState(
    reachedInstances(instance$),
    ({ key }) => key,
    ({ state }) => state === undefined,
  )
  const supervised$ = superviseTasks(
    taskEvent$,
    {
      configure: pluginOf,
      connection,
      run: (task) => tasks.get(taskKey(task))?.state.run ?? 0,
      apply,
      owned: ({ allocId, taskName }) =>
        registry.instancesOf(allocId).filter(({ options }) => options.taskName === taskName),
      healthOf: (ref) => health.of(instanceKey(ref)),
      release: (task) => {
        claims.release(task)
        return directories.release(task, settingsOf(taskPlugin(kinds, stateDir, task)))
      },
      now,
    },
    timing,
  )
  const snapshot$ = nodeSnapshots(
    { registryEvent$: registry.watch$, health$: health.all$, fingerprint$: fingerprint.all$ },
    { now },
    { nodeId },
  )
  for (const { feed } of [tasks, health, fingerprint, reached]) river.add(feed)
  river.add(registry.connect(lostInstances(instance$, { taskState }, timing)))
  river.add(supervised$.subscribe((said) => ('kind' in said ? note$.next(said) : restart$.next(said))))
  river.add(registry.problem$.subscribe(problem$))
  const edge$ = edgeLines({
    registryEvent$: registry.watch$,
    health$: health.all$,
    fingerprint$: fingerprint.all$,
    note$,
    problem$,
  })
  river.add(edge$.subscribe(({ noun, line }) => logger(noun)('%s', line)))
  river.add(snapshot$.subscribe(node$))
  river.add(instance$.connect())
  river.add(() => [note$, restart$, node$, problem$].forEach((subject$) => subject$.complete()))
  // In a turn of its own: who opens a host can subscribe to it before anything happens.
  river.add(timer(0).subscribe(() => opened$.next(true)))

  return {
    ...ports,
    registry,
    health$: health.all$,
    fingerprint$: fingerprint.all$,
    note$: note$.asObservable(),
    node$: node$.asObservable(),
    problem$: problem$.asObservable(),
    waitFor: async (type, name, { healthy = false, ...options } = {}) =>
      healthy
        ? firstValue(
            health.all$.pipe(
              filter((event) => event.healthy && event.plugin.type === type && event.plugin.name === name),
              map(({ plugin }) => registry.get(plugin) ?? plugin),
            ),
            `waiting for ${words({ type: validName('type', type), name: validName('name', name) })} to be healthy`,
            options,
          )
        : registry.waitFor(type, name, options),
    client: <T>(type: PluginType, name: string) =>
      clientOf(type, words({ type, name }), () => registry.instances(type, name)) as T,
    close: () => scope.close(),
    [Symbol.asyncDispose]: () => scope.close(),
  }
}

/** How each instance can be reached; without a state once it is gone. */
function reachedInstances(instance$: Observable<PluginInstance>): Observable<{ key: string; state?: ConnectionState }> {
  return instance$.pipe(
    mergeMap(({ ref, state$ }) => {
      const key = instanceKey(ref)
      return concat(state$.pipe(map((state) => ({ key, state }))), of({ key }))
    }),
  )
}

function closed(): PlugstreamError {
  return new PlugstreamError('ERR_CLOSED', 'the host was closed')
}

function kindOf(kinds: readonly PluginKind[], type: PluginType): PluginKind {
  const kind = kinds.find(({ types }) => types.includes(type))
  if (kind) return kind
  throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `no plugin kind of this host has the type ${type}`)
}

/** What its directories are made by. */
function settingsOf(plugin: TaskPlugin | undefined): { kind: string; config: PluginTaskConfig } | undefined {
  return plugin && { kind: plugin.kind.kind, config: plugin.config }
}

async function ownStore(stateDir: string, scope: Scope): Promise<StateStore> {
  const store = await sqliteStore({ file: storeFile(stateDir) })
  scope.add(() => store.close())
  return store
}

const untold: TaskState = { phase: 'unknown', run: 0, description: 'nothing was told of its task' }

const keyOfEvent = ({ plugin }: { plugin: PluginInfo }): string => instanceKey(plugin)
const isFinal = ({ final }: { final: boolean }): boolean => final
const words = ({ type, name }: Pick<PluginInfo, 'type' | 'name'>): string => `${type} plugin ${JSON.stringify(name)}`
