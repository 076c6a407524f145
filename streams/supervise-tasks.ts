import {
  catchError,
  combineLatest,
  concat,
  connect,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  startWith,
  switchMap,
  take,
  takeUntil,
  takeWhile,
  tap,
  type Observable,
  type ObservableInput,
  type OperatorFunction,
} from 'rxjs'
import { defaultTiming, firstLookAgainMs, lookAgainFactor, type Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { HealthEvent, HealthReason } from '../lib/plugin/health.js'
import { Holdings } from '../lib/plugin/holdings.js'
import type { ChannelOptions, PluginIdentity, PluginTaskConfig } from '../lib/plugin/kind.js'
import { instanceKey, refOf, type PluginRef, type RegistryChange, type RegistryEvent } from '../lib/plugin/plugin.js'
import {
  findingOfEnd,
  findingOfFailure,
  findingOfHealth,
  findingsOfDelay,
  isWorthANote,
  type TaskFinding,
} from '../lib/task/task-finding.js'
import { taskKey, type PluginTask, type RestartRequest, type TaskEvent, type TaskNote } from '../lib/task/task.js'
import { flowPerKey } from './operators/flow-per-key.js'
import { reasonOfUnidentified } from './operators/identified.js'
import { overdue } from './operators/overdue.js'
import { retrySaying } from './operators/retry-saying.js'
import { retryStoreWrite } from './operators/retry-store-write.js'
import type { Connection, ConnectionState, ConnectionTarget } from './values.js'

/** A task's configuration, as far as supervision needs it. */
export interface SupervisedPlugin {
  /** What is registered, in order, once the plugin is ready. */
  refs: readonly PluginRef[]
  config: Pick<PluginTaskConfig, 'healthTimeoutMs' | 'initTimeoutMs' | 'identity'>
  socketPath: string
  /** See `ConnectionTarget.options`. Default: nothing. */
  channelOptions?: ChannelOptions
  /** The options it is registered with. */
  options: Readonly<Record<string, string>>
}

export interface SupervisionPorts {
  /** Reads a task's configuration; undefined: the task is no plugin. What it throws becomes a note of the task. */
  configure(task: PluginTask): SupervisedPlugin | undefined
  /** The number of the task's present run, as in `TaskState.run`. */
  run(task: PluginTask): number
  /** What is known of the server behind a socket, present state first; shared by all who ask for one target. */
  connection(target: ConnectionTarget): ObservableInput<ConnectionState>
  /**
   * Asked before a plugin that is ready is registered: with the first value it is, and as long as there is none it is not. What it fails
   * with becomes a note of the task. Default: everything is registered.
   */
  admit?(task: PluginTask, connection: Connection): ObservableInput<unknown>
  /** Changes the registry: takes its place in the queue as it is subscribed, answers when saved. Unsubscribing loses the answer only. */
  apply(change: RegistryChange): ObservableInput<RegistryEvent | undefined>
  /** The registered instances of this alloc and task name, restored ones included. */
  owned(task: PluginTask): readonly PluginRef[]
  /** The health of an instance, present state first. */
  healthOf(ref: PluginRef): ObservableInput<HealthEvent>
  /** Removes what was made for a task that never starts again. Asked for in the turn of its `stopped`. */
  release(task: PluginTask): ObservableInput<unknown>
  /** Unix ms. */
  now(): number
}

type SupervisionTiming = Pick<Timing, 'unhealthyBeatMs'>

/**
 * Task events flow in; notes for the tasks' own event lists and requests to restart flow out, and the registry is changed through a
 * port: a plugin is registered when it is ready, and deregistered when its task is told to stop, exits for good, or comes back with
 * another configuration. A note has a `kind`, a request has none.
 *
 * One flow a task, however often it restarts; each event takes the place of what the one before began. A flow ends with what
 * `stopped` asks for. A source that ends or fails deregisters nothing and cuts nothing short: the flows go on until unsubscribed.
 */
export function superviseTasks(
  taskEvent$: Observable<TaskEvent>,
  ports: SupervisionPorts,
  timing: SupervisionTiming = defaultTiming,
): Observable<TaskNote | RestartRequest> {
  return concat(taskEvent$.pipe(catchError(() => EMPTY)), NEVER).pipe(
    flowPerKey(
      ({ task }) => taskKey(task),
      (event$) => supervision(event$, ports, timing),
    ),
  )
}

/** The events of one task, and what each leads to. */
function supervision(
  event$: Observable<TaskEvent>,
  ports: SupervisionPorts,
  timing: SupervisionTiming,
): Observable<TaskNote | RestartRequest> {
  return defer(() => {
    const holdings = new Holdings()
    const leave = (task: PluginTask, reason: string, keep?: readonly PluginRef[]): Observable<never> => {
      holdings.leave(ports.owned(task), reason, keep)
      return settle(holdings, ports)
    }
    const act = (event: TaskEvent): Observable<TaskFinding | typeof ended> => {
      const { task } = event
      switch (event.kind) {
        case 'prestart':
        case 'started': {
          const plugin = ports.configure(task)
          const left$ = leave(task, 'configuration changed', plugin?.refs ?? [])
          return plugin && event.kind === 'started' ? concat(left$, run(task, plugin, holdings, ports, timing)) : left$
        }
        case 'exited':
          return concat(
            of(findingOfEnd(event)),
            event.willRestart ? settle(holdings, ports) : leave(task, 'task-exited'),
          )
        case 'stopping':
          return concat(of(findingOfEnd(event)), leave(task, 'stopping'))
        case 'stopped':
          return concat(of(findingOfEnd(event)), merge(leave(task, 'stopped'), released(task, ports)), of(ended))
      }
    }
    return event$.pipe(
      switchMap((event) =>
        defer(() => act(event)).pipe(
          catchError((failure: unknown) =>
            concat(of(findingOfFailure(messageOf(failure))), leave(event.task, 'configuration changed')),
          ),
          map((finding) => ({ finding, task: event.task })),
        ),
      ),
      takeWhile((found): found is Found => found.finding !== ended),
      told(ports),
    )
  })
}

/** Marks that all that `stopped` asks for is done. */
const ended = Symbol('ended')
/** Marks that everything a plugin registers is saved. */
const registered = Symbol('registered')

/** A run from its start: wait until the plugin is ready, register it, and from then on go by the health of its instances. */
function run(
  task: PluginTask,
  plugin: SupervisedPlugin,
  holdings: Holdings,
  ports: SupervisionPorts,
  timing: SupervisionTiming,
): Observable<TaskFinding> {
  const [first] = plugin.refs
  if (!first) return EMPTY
  const { config, socketPath, channelOptions: options } = plugin
  const target = { type: first.type, socketPath, run: ports.run(task), ...(options && { options }) }
  const before = new Set(ports.owned(task).map(instanceKey))
  const late: OperatorFunction<Look, TaskFinding> = (look$) =>
    look$.pipe(
      overdue({
        first: nothingSeen,
        asksForPatience: ({ reason }) => reason === 'not-ready',
        timeoutMs: config.healthTimeoutMs,
        patienceMs: config.initTimeoutMs,
      }),
      mergeMap((last) => {
        const afterMs = last.reason === 'not-ready' ? config.initTimeoutMs : config.healthTimeoutMs
        return findingsOfDelay(last, afterMs, socketPath)
      }),
    )
  const waited$ = defer(() => ports.connection(target)).pipe(
    retrySaying(broken, () => timing.unhealthyBeatMs),
    // The connection is listened to until the plugin is registered: by then its instance listens to it too, and it stays open.
    connect((state$) =>
      state$.pipe(
        identified(timing),
        takeWhile(({ identity }) => identity === undefined, true),
        connect((look$) => {
          const found$ = look$.pipe(filter(isIdentified))
          return merge(
            look$.pipe(late, takeUntil(found$)),
            found$.pipe(
              mergeMap(({ identity, connection }) =>
                concat(admitted(task, connection, ports), register(plugin, identity, before, holdings, ports)),
              ),
              catchError((failure: unknown) => of(findingOfFailure(messageOf(failure)))),
            ),
          )
        }),
      ),
    ),
  )
  return waited$.pipe(mergeMap((found) => (found === registered ? healthOfAll(plugin.refs, ports) : of(found))))
}

/** What is known of a plugin that is waited for; with its identity, it is ready to be registered. */
interface Look {
  reason: HealthReason
  description: string
  identity?: Partial<PluginIdentity>
  connection?: Connection
}

const nothingSeen: Look = { reason: 'unknown', description: 'nothing is known of its socket yet' }

function isIdentified(look: Look): look is Look & { identity: Partial<PluginIdentity>; connection: Connection } {
  return look.identity !== undefined
}

/** Says nothing, and completes as soon as the plugin may be registered. */
function admitted(task: PluginTask, connection: Connection, ports: SupervisionPorts): Observable<never> {
  const word$ = defer(() => ports.admit?.(task, connection) ?? of(true))
  return concat(word$, NEVER).pipe(take(1), ignoreElements())
}

/** Asks a plugin that is ready who it is; one that fails to say is not ready yet, and is asked again after a growing pause. */
function identified({ unhealthyBeatMs }: SupervisionTiming): OperatorFunction<ConnectionState, Look> {
  return switchMap(({ connection, healthy, reason, description }): Observable<Look> => {
    if (!healthy || !connection) return of({ reason, description })
    return defer(() => connection.identify()).pipe(
      take(1),
      map((identity) => ({ reason, description, identity, connection })),
      retrySaying(unwilling, (failures) =>
        Math.min(Math.round(firstLookAgainMs * lookAgainFactor ** (failures - 1)), unhealthyBeatMs),
      ),
      startWith(unidentified),
    )
  })
}

const unidentified: Look = { reason: 'probe-timeout', description: 'it is ready, and does not say who it is' }

function unwilling(failure: unknown): Look {
  return { reason: reasonOfUnidentified(failure), description: messageOf(failure) }
}

/** A watch that fails as such. */
function broken(failure: unknown): ConnectionState {
  const description = messageOf(failure)
  return { healthy: false, reason: 'disconnected', description, answers: false, epoch: 0, connection: undefined }
}

/** All of them or none: where one is refused, those before it are taken back, except what was registered `before` this run. */
function register(
  { refs, socketPath, options, config }: SupervisedPlugin,
  identity: Partial<PluginIdentity>,
  before: ReadonlySet<string>,
  holdings: Holdings,
  ports: SupervisionPorts,
): Observable<TaskFinding | typeof registered> {
  const added: PluginRef[] = []
  const registrations = refs.map((ref) =>
    defer(() => {
      holdings.hold(ref)
      const plugin = { ...refOf(ref), ...config.identity, ...identity, connection: { socketPath }, options }
      return applied({ kind: 'register', plugin }, ports)
    }).pipe(
      tap(() => before.has(instanceKey(ref)) || added.push(ref)),
      catchError((failure: unknown) => {
        holdings.left(ref)
        throw failure
      }),
      ignoreElements(),
    ),
  )
  return concat(...registrations, of(registered)).pipe(
    catchError((failure: unknown) => {
      const kept = refs.filter((ref) => before.has(instanceKey(ref)))
      holdings.leave(added, 'not all of it could be registered', kept)
      return concat(of(findingOfFailure(messageOf(failure))), settle(holdings, ports))
    }),
  )
}

/** Makes the deregistrations that are still to be made. */
function settle(holdings: Holdings, ports: SupervisionPorts): Observable<never> {
  return defer(() => holdings.leaving).pipe(
    mergeMap((change) =>
      applied(change, ports).pipe(
        catchError(() => of(undefined)), // refused for good: the registry closes, or never had it
        tap(() => holdings.left(change.ref)),
      ),
    ),
    ignoreElements(),
  )
}

/** A change, made again for as long as the store cannot save it. One answer, and complete. */
function applied(change: RegistryChange, ports: SupervisionPorts): Observable<RegistryEvent | undefined> {
  return defer(() => ports.apply(change)).pipe(take(1), defaultIfEmpty(undefined), retryStoreWrite())
}

function released(task: PluginTask, ports: SupervisionPorts): Observable<never> {
  return defer(() => ports.release(task)).pipe(
    ignoreElements(),
    catchError(() => EMPTY), // its directory stays behind, as after a crash
  )
}

function healthOfAll(refs: readonly PluginRef[], ports: SupervisionPorts): Observable<TaskFinding> {
  const each = refs.map((ref) => defer(() => ports.healthOf(ref)).pipe(catchError(() => NEVER)))
  return combineLatest(each).pipe(map(findingOfHealth))
}

interface Found {
  finding: TaskFinding
  task: PluginTask
}

/** The one place where notes are written. */
function told(ports: SupervisionPorts): OperatorFunction<Found, TaskNote | RestartRequest> {
  return (found$) =>
    defer(() => {
      let last: TaskNote | undefined
      return found$.pipe(
        filter(({ finding }) => isWorthANote(finding, last)),
        mergeMap(({ finding: { kind, reason, message }, task }) => {
          const note: TaskNote = { task, kind, reason, message, at: ports.now() }
          if (kind === 'restarting') return [note, { task, reason, message }]
          last = note
          return [note]
        }),
      )
    })
}
