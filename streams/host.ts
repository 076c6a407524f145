import {
  catchError,
  concat,
  concatMap,
  connectable,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  isObservable,
  map,
  merge,
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
import { grpcKind } from '../lib/grpc/kind.js'
import { problemCount } from '../lib/defaults.js'
import { invalidOption, PlugstreamError } from '../lib/errors.js'
import { hostSettings, type HostSettings } from '../lib/host/settings.js'
import { makeHostDirectory, storeFile } from '../lib/host/state-dir.js'
import { checkFields, picked, takeOptions } from '../lib/options.js'
import { dial } from '../lib/plugin/dial.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { ChannelOptions, PluginKind, PluginTaskConfig } from '../lib/plugin/kind.js'
import type { NodeSnapshot } from '../lib/plugin/node-snapshot.js'
import { CallHolds } from '../lib/plugin/call-holds.js'
import {
  instanceKey,
  type PluginInfo,
  type PluginType,
  type RegistryChange,
  type RegistryEvent,
} from '../lib/plugin/plugin.js'
import { nameOf, PluginClients, type Reach } from '../lib/plugin/plugin-clients.js'
import { watchSocket } from '../lib/plugin/socket-watch.js'
import { validName } from '../lib/plugin/validate.js'
import type { SocketSight } from '../lib/plugin/socket.js'
import { logger } from '../lib/log.js'
import { Scope } from '../lib/scope.js'
import { lockStateDir } from '../lib/store/lock.js'
import { openStore } from '../lib/store/open-store.js'
import { sqliteStore } from '../lib/store/sqlite-store.js'
import type { StateStore } from '../lib/store/state-store.js'
import { TaskClaims } from '../lib/task/claims.js'
import { TaskDirectories } from '../lib/task/task-directories.js'
import { openTaskJournal } from '../lib/task/task-journal.js'
import { takeTask, takeTaskEvent, taskPlugin, type TaskPlugin } from '../lib/task/task-plugin.js'
import { volumeRootOf } from '../lib/task/task-paths.js'
import {
  taskKey,
  type PluginTask,
  type RestartRequest,
  type TaskEvent,
  type TaskNote,
  type TaskRef,
} from '../lib/task/task.js'
import { Unfinished } from '../lib/unfinished.js'
import { connectionStates } from './connection-states.js'
import { edgeLines } from './edge-lines.js'
import { fingerprints } from './fingerprints.js'
import { healthEvents } from './health-events.js'
import { openAnnouncements } from './host-announcements.js'
import type { HostPorts } from './host-ports.js'
import { HostReplacements } from './host-replacements.js'
import { openVolumes } from './host-volumes.js'
import { lostInstances } from './lost-instances.js'
import { nodeSnapshots } from './node-snapshots.js'
import { abortable } from './operators/abortable.js'
import { firstValue, waitFields } from './operators/first-value.js'
import { holdUntil } from './operators/hold-until.js'
import { listen } from './operators/listen.js'
import { openConnection } from './operators/open-connection.js'
import { shareByKey } from './operators/share-by-key.js'
import { hostFields, type HostInit, type PluginHost } from './plugin-host.js'
import { pluginInstances } from './plugin-instances.js'
import { presentState } from './present-state.js'
import { Registry } from './registry.js'
import { superviseTasks } from './supervise-tasks.js'
import { taskStates } from './task-states.js'
import type { ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'

/**
 * Opens a host: takes the state directory, restores the registry, and joins the stages into one river.
 *
 * @throws ERR_OPTION_INVALID naming the field, ERR_STATE_LOCKED where another host has the directory, ERR_STORE_READ.
 * @example
 * await using host = await openHost({ stateDir: '/var/lib/agent', task$: (ports) => runTasks(spec$, processDriver(), ports) })
 * host.health$.subscribe((h) => console.log(h.plugin.name, h.healthy, h.reason))
 */
export async function openHost(init: HostInit): Promise<PluginHost> {
  const settings = hostSettings(init, ({ rpcTimeoutMs }) => [csiKind({ rpcTimeoutMs }), grpcKind()])
  checkFields(init, hostFields)
  const { task$ } = init
  if (!isObservable(task$) && typeof task$ !== 'function')
    throw invalidOption('task$', task$, 'an Observable of task events, or a function that makes one')
  if (init.secrets !== undefined && typeof init.secrets !== 'function')
    throw invalidOption('secrets', init.secrets, 'a function that gives secrets by their name')
  const scope = new Scope()
  try {
    return await open(init, settings, scope)
  } catch (failure) {
    await scope.close()
    throw failure
  }
}

async function open(init: HostInit, settings: HostSettings, scope: Scope): Promise<PluginHost> {
  const { stateDir, nodeId, registrationDirectory, kinds, timing } = settings
  const problem$ = new ReplaySubject<PlugstreamError>(problemCount)
  const opened$ = new ReplaySubject<true>(1)
  const taskEvent$ = new Subject<TaskEvent>()
  const restart$ = new Subject<RestartRequest>()
  const unwell$ = new Subject<TaskRef>()
  const note$ = new Subject<TaskNote>()
  const outdated$ = new Subject<Pick<PluginInfo, 'type' | 'name'>>()
  const node$ = new ReplaySubject<NodeSnapshot>(1)
  const runners = new Unfinished()
  const unfinished = new Unfinished()
  const claims = new TaskClaims()
  const holds = new CallHolds()
  const told = (failure: unknown, doing: string): Observable<never> => {
    problem$.next(PlugstreamError.from(failure, 'ERR_USAGE', doing))
    return EMPTY
  }
  const readPlugin = (task: PluginTask): TaskPlugin | undefined => taskPlugin(kinds, stateDir, task)
  const pluginOf = (task: PluginTask): TaskPlugin | undefined => {
    const plugin = readPlugin(task)
    if (plugin) claims.claim(task, plugin.refs)
    return plugin
  }
  const directories = new TaskDirectories({ stateDir, dial })
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
  await makeHostDirectory('stateDir', stateDir)
  if (registrationDirectory !== undefined) await makeHostDirectory('registrationDirectory', registrationDirectory)
  const lock = await lockStateDir(stateDir)
  rest.add(() => lock.release())
  const store = init.store === undefined ? await ownStore(stateDir, rest) : openStore(init.store)
  const journal = await openTaskJournal(store, (problem) => problem$.next(problem))
  const clients = new PluginClients(
    kinds,
    (plugin): Reach | undefined => {
      // also for who holds a client of a host that is closed
      if (scope.closed) throw closed()
      const state = reached.get(instanceKey(plugin))?.state
      return state && { ...state, channel: state.connection?.channel, gone: endOfRun(plugin) }
    },
    holds,
  )
  scope.add(() => clients.close())
  const registry = await Registry.open({
    store,
    types: kinds.flatMap((kind) => kind.types),
    dispensers: { ...clients.dispensers(), ...init.dispensers },
    closeTimeoutMs: timing.closeTimeoutMs,
  })
  rest.add(() => registry.close())
  rest.add(() => runners.settled())
  rest.add(() => {
    unfinished.add(directories.idle())
    return unfinished.settled(timing.closeTimeoutMs)
  })

  const ports: HostPorts = {
    prepare: async (task) => {
      if (scope.closed) throw closed()
      const own = takeTask(task)
      return directories.prepare(own, settingsOf(pluginOf(own)))
    },
    restart$: restart$.asObservable(),
    unwell$: unwell$.asObservable(),
    journal,
    order$: defer(() => replacing.order$),
    waitOnClose: (work) => runners.add(work),
    problem: (failure, task) => {
      problem$.next(failure)
      if (task) replacing.refused(task, failure)
    },
  }

  // The river. Task state before health before supervision, so that each finds in the one before it what an event has changed.
  const river = new Subscription()
  rest.add(() => river.unsubscribe())
  const lastEvents = presentState(
    taskEvent$,
    ({ task }) => taskKey(task),
    ({ kind }) => kind === 'stopped',
  )
  const tasks = presentState(taskStates(taskEvent$), taskKey, ({ state }) => state.phase === 'stopped')
  const taskState = (plugin: PluginInfo): Observable<TaskState> => {
    const key = taskKeyOf(plugin)
    return concat(tasks.get(key) ? EMPTY : of(untold), tasks.of(key).pipe(map(({ state }) => state)))
  }
  // Of a process that nothing was told of, an end means nothing: it may be of one that could not begin beside it.
  const endOfRun = (plugin: PluginInfo): Reach['gone'] => {
    const { run, phase } = tasks.get(taskKeyOf(plugin))?.state ?? untold
    if (run === 0 && phase !== 'running') return undefined
    const hasEnded = (state: TaskState): boolean => state.run !== run || hasNoProcess(state)
    // It ends without a value when the host closes: nobody can be called any more.
    const ended = (): Observable<unknown> => taskState(plugin).pipe(filter(hasEnded), defaultIfEmpty(undefined))
    return (signal) => firstValue(ended(), `waiting for the process of ${nameOf(plugin)} to be gone`, { signal })
  }
  const kindFor = (type: PluginType): PluginKind | undefined => kinds.find(({ types }) => types.includes(type))
  const connection = shareByKey(
    ({ type, socketPath, run, options = {} }: ConnectionTarget) =>
      JSON.stringify([kindFor(type)?.kind, socketPath, run, options]),
    ({ type, socketPath, options = {} }) =>
      connectionStates(
        listen<SocketSight>((listener) => watchSocket(socketPath, listener)),
        {
          connect: () =>
            openConnection(
              () => clients.kindOf(type).open(socketPath, options),
              (work, end) => unfinished.add(work, end),
            ),
          dial: () => abortable((signal) => dial(socketPath, signal)),
        },
        timing,
      ),
  )
  const apply = (change: RegistryChange): Observable<RegistryEvent | undefined> => defer(() => registry.apply(change))
  const channelOptions = ({ type, options }: PluginInfo): ChannelOptions =>
    picked(options, kindFor(type)?.channelOptions)
  const instancePorts = { taskState, connection, channelOptions, apply }
  const instance$ = connectable(pluginInstances(registry.watch$, instancePorts, timing))
  const health = presentState(healthEvents(instance$, { now }), keyOfEvent, isFinal)
  const fingerprint = presentState(fingerprints(instance$, { now, outdated$ }, timing), keyOfEvent, isFinal)
  const reached = presentState(
    reachedInstances(instance$),
    ({ key }) => key,
    ({ state }) => state === undefined,
  )
  const replacing = new HostReplacements({
    ...{ taskEvent$, restart$, tasks, registry, health, fingerprint, holds, connection },
    told: lastEvents,
    pluginOf: readPlugin,
    channelOf: (ref) => reached.get(instanceKey(ref))?.state?.connection?.channel,
  })
  const supervised$ = superviseTasks(
    taskEvent$,
    {
      configure: pluginOf,
      connection,
      run: (task) => tasks.get(taskKey(task))?.state.run ?? 0,
      admit: (task, connection) => replacing.admit(task, connection),
      apply,
      owned: ({ allocId, taskName }) =>
        registry.instancesOf(allocId).filter(({ options }) => options.taskName === taskName),
      healthOf: (ref) => health.of(instanceKey(ref)),
      release: (task) => {
        claims.release(task)
        return directories.release(task, settingsOf(readPlugin(task)))
      },
      now,
    },
    timing,
  )
  const { notes: announced, claimed } = openAnnouncements({
    directory: registrationDirectory,
    ...{ registry, opened$, unfinished, timing, connection, apply },
  })
  const snapshot$ = nodeSnapshots(
    { registryEvent$: registry.watch$, health$: health.all$, fingerprint$: fingerprint.all$ },
    { now },
    { nodeId },
  )
  // Volumes: closed before what they call goes.
  const { volumes, ...volumeWork } = await openVolumes({
    store,
    registry,
    health,
    clients,
    volumeRoot: (plugin) => volumeRootOf(stateDir, 'csi', plugin),
    secrets: init.secrets,
    problem: (problem) => problem$.next(problem),
    isFull: (name) => outdated$.next({ type: 'csi-node', name }),
    closeTimeoutMs: timing.closeTimeoutMs,
  })
  rest.add(() => volumeWork.close())
  for (const { feed } of [lastEvents, tasks, health, fingerprint, reached, announced]) river.add(feed)
  const claims$ = (plugin: PluginInfo): Observable<TaskState> => merge(taskState(plugin), claimed(plugin))
  river.add(registry.connect(lostInstances(instance$, { taskState: claims$ }, timing)))
  river.add(supervised$.subscribe((said) => ('kind' in said ? note$.next(said) : restart$.next(said))))
  river.add(replacing.words(timing).subscribe(replacing.heard))
  river.add(registry.problem$.subscribe(problem$))
  river.add(announced.all$.subscribe((note) => note.kind === 'failed' && problem$.next(note.failure)))
  const edge$ = edgeLines({
    registryEvent$: registry.watch$,
    health$: health.all$,
    fingerprint$: fingerprint.all$,
    volumeEvent$: volumes.event$,
    note$,
    replacement$: replacing.state$,
    problem$,
  })
  river.add(edge$.subscribe(({ noun, line }) => logger(noun)('%s', line)))
  river.add(snapshot$.subscribe(node$))
  river.add(health.all$.pipe(filter(({ healthy }) => healthy)).subscribe(({ plugin }) => volumeWork.ready(plugin)))
  river.add(
    health.all$
      .pipe(
        filter(isUnwell),
        map(({ plugin }) => taskOf(plugin)),
      )
      .subscribe(unwell$),
  )
  river.add(instance$.connect())
  river.add(() => [note$, restart$, unwell$, node$, problem$].forEach((subject$) => subject$.complete()))
  river.add(() => replacing.close())
  // In a turn of its own: who opens a host can subscribe to it before anything happens.
  river.add(timer(0).subscribe(() => opened$.next(true)))

  return {
    ...ports,
    registry,
    volumes,
    health$: health.all$,
    fingerprint$: fingerprint.all$,
    note$: note$.asObservable(),
    order$: replacing.order$.asObservable(),
    replacement$: replacing.state$.asObservable(),
    node$: defer(() => (scope.closed ? EMPTY : node$)),
    problem$: problem$.asObservable(),
    waitFor: async (type, name, given = {}) => {
      const { healthy = false, ...options } = takeOptions('options', given, [...waitFields, 'healthy'])
      if (typeof healthy !== 'boolean') throw invalidOption('healthy', healthy, 'true or false')
      return healthy
        ? firstValue(
            health.all$.pipe(
              filter((event) => event.healthy && event.plugin.type === type && event.plugin.name === name),
              map(({ plugin }) => registry.get(plugin) ?? plugin),
            ),
            `waiting for ${nameOf({ type: validName('type', type), name: validName('name', name) })} to be healthy`,
            options,
          )
        : registry.waitFor(type, name, options)
    },
    replace: async (task, options) => {
      if (scope.closed) throw closed()
      return replacing.replace(task, options)
    },
    client: <T>(type: PluginType, name: string) =>
      clients.of(type, nameOf({ type, name }), () => registry.instances(type, name)) as T,
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

const taskOf = ({ allocId, options: { taskName = '' } }: PluginInfo): TaskRef => ({ allocId, taskName })
const taskKeyOf = (plugin: PluginInfo): string => taskKey(taskOf(plugin))
const isUnwell = ({ healthy, final }: HealthEvent): boolean => !healthy && !final
const hasNoProcess = ({ phase }: TaskState): boolean => phase === 'exited' || phase === 'stopped'
const keyOfEvent = ({ plugin }: { plugin: PluginInfo }): string => instanceKey(plugin)
const isFinal = ({ final }: { final: boolean }): boolean => final
