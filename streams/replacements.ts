import {
  catchError,
  combineLatest,
  concat,
  defer,
  EMPTY,
  filter,
  forkJoin,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  race,
  shareReplay,
  switchMap,
  take,
  takeUntil,
  throwError,
  timer,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import type { Timing } from '../lib/defaults.js'
import { PlugstreamError } from '../lib/errors.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { PluginRef } from '../lib/plugin/plugin.js'
import { checkSuccessor, type ReplacedHalf } from '../lib/plugin/replaced-half.js'
import type { Replacement } from '../lib/task/replacement.js'
import type { TaskOrder } from '../lib/task/task-spec.js'
import { taskKey, type PluginTask, type RestartRequest, type TaskEvent, type TaskRef } from '../lib/task/task.js'
import { beside } from './operators/beside.js'
import { retryLostCall } from './operators/retry-lost-call.js'
import { untilFirst } from './operators/until-first.js'
import type { Connection } from './values.js'

/** A task that is to take the place of another one. */
export interface ReplacementRequest {
  /** The name of the plugin. */
  plugin: string
  from: PluginTask
  to: PluginTask
  fromHalves: readonly ReplacedHalf[]
  toRefs: readonly PluginRef[]
  upgrade: NonNullable<PluginTask['upgrade']>
  /** Replaces also where something would be lost. */
  force: boolean
  /** How long the whole attempt may take, should nothing else end it. */
  timeoutMs: number
  /** Its first value ends the attempt. */
  aborted$: Observable<unknown>
}

export interface ReplacementPorts {
  /** What happens to tasks, from now on. */
  taskEvent$: Observable<TaskEvent>
  /** A task was told of, and has not stopped. */
  isThere(task: TaskRef): boolean
  /** Restarts that supervision asks for. */
  restart$: Observable<RestartRequest>
  /** Tasks that whoever runs them cannot take. */
  refusal$: Observable<{ task: TaskRef; failure: PlugstreamError }>
  /**
   * While it is listened to, the plugin of a task is not registered before `verdict` has had its first value; that, or what the verdict fails
   * with, is passed on.
   */
  judge(task: PluginTask, verdict: (connection: Connection) => Observable<unknown>): Observable<unknown>
  /** The connection to the plugin of a task, once it answers that it is not ready. */
  standby(task: PluginTask): Observable<Connection>
  /** The health of an instance, present state first. */
  healthOf(ref: PluginRef): Observable<HealthEvent>
  /** Completes when none of these is registered. */
  deregistered(refs: readonly PluginRef[]): ObservableInput<unknown>
  /** While it is listened to, calls to these plugins are held back. */
  hold(refs: readonly PluginRef[]): Observable<never>
  /** Completes when no call to these instances is in flight. */
  drained(refs: readonly PluginRef[]): ObservableInput<unknown>
  /** Unix ms. */
  now(): number
}

type ReplacementTiming = Pick<Timing, 'bakeMs' | 'drainMs' | 'holdMs'>

/** What is wanted of whoever runs the tasks, or how far a replacement is. */
export type ReplacementWord = { order: PluginTask | TaskOrder } | { state: Replacement }

/**
 * Tasks that are to replace others flow in; orders to whoever runs them, and how far each replacement is, flow out.
 *
 * With `overlap` the new task is started beside the old one, which serves until the new one does, and is stopped once that has stayed well
 * for `bakeMs`. With `exclusive` the old one is stopped first, and with `elected` when the new one stands by; calls are held back until
 * the new one serves, for `holdMs` at most. What can do less than the old one is not registered, so that it never becomes current.
 *
 * Whatever goes wrong before the old one is given up ends in the new one being stopped, and the old one started where it was stopped. Who
 * leaves the output leaves everything as it is.
 */
export function replacements(
  request$: Observable<ReplacementRequest>,
  ports: ReplacementPorts,
  timing: ReplacementTiming,
): Observable<ReplacementWord> {
  return request$.pipe(
    catchError(() => EMPTY), // what is under way is ended all the same
    mergeMap((request) => replacement(request, ports, timing)),
  )
}

function replacement(
  request: ReplacementRequest,
  ports: ReplacementPorts,
  timing: ReplacementTiming,
): Observable<ReplacementWord> {
  return defer(() => {
    const { from: old, to: young, fromHalves, toRefs, upgrade } = request
    const oldRefs = fromHalves.map(({ ref }) => ref)
    // What is to be undone where it goes wrong.
    let isBegun = false
    let isStopped = false

    const say = (phase: Replacement['phase'], failure?: PlugstreamError): Observable<ReplacementWord> =>
      defer(() => of({ state: stateOf(request, phase, failure, ports.now()) }))
    const held = (work$: Observable<ReplacementWord>): Observable<ReplacementWord> =>
      beside(ports.hold([...oldRefs, ...toRefs]).pipe(takeUntil(timer(timing.holdMs))), work$)

    const judged = (connection: Connection): Observable<unknown> => verdict(request, connection)
    const admitted$ = defer(() => ports.judge(young, judged)).pipe(
      take(1),
      shareReplay({ bufferSize: 1, refCount: true }),
    )
    const begin$ = order(young, () => (isBegun = true))
    const healthy$ = healthOfAll(toRefs, ports)
    const standby$ = defer(() => ports.standby(young)).pipe(take(1), switchMap(judgedIfItAnswers(judged)))

    const drain$ = drained(oldRefs, ports, timing.drainMs)
    const stopOld$ = defer(() => {
      isStopped = true
      return stopped(old, ports)
    })
    const handOver$ = concat(say('handing-over'), drain$, stopOld$)
    const bake$ = concat(say('baking'), stayingWell(request, ports, timing.bakeMs))

    const ways: Record<typeof upgrade, () => Observable<ReplacementWord>> = {
      overlap: () => concat(say('starting'), untilFirst(admitted$, begin$), healthy$, bake$),
      exclusive: () => concat(held(concat(handOver$, say('starting'), untilFirst(admitted$, begin$), healthy$)), bake$),
      elected: () =>
        concat(
          say('starting'),
          untilFirst(race(standby$, admitted$), begin$),
          held(concat(handOver$, untilFirst(admitted$), healthy$)),
          bake$,
        ),
    }
    const attempt$ = defer(() => {
      // A half that it does not have is known before it is started.
      if (!request.force)
        checkSuccessor(request.plugin, fromHalves, new Map(toRefs.map(({ type }) => [type, undefined])))
      return beside(merge(admitted$, failing(request, ports)), ways[upgrade]())
    })
    // A store that cannot save that one is gone keeps nobody waiting: calls go to the other.
    const deregistered = (refs: readonly PluginRef[]): Observable<never> =>
      within(timing.holdMs, defer(() => ports.deregistered(refs)).pipe(catchError(() => EMPTY)))
    const stopYoung$ = defer(() => (isBegun ? concat(stopped(young, ports), deregistered(toRefs)) : EMPTY))
    const rollBack = (failure: PlugstreamError): Observable<ReplacementWord> => {
      const goBack$ = isStopped
        ? held(concat(stopYoung$, order(old), within(timing.holdMs, healthOfAll(oldRefs, ports))))
        : ports.isThere(old)
          ? stopYoung$
          : EMPTY // it was stopped by somebody else: the new one is all there is
      return concat(isBegun || isStopped ? say('rolling-back', failure) : EMPTY, goBack$)
    }
    const finish$ = concat(
      defer(() => (isStopped ? EMPTY : concat(say('stopping'), drain$, stopped(old, ports)))),
      deregistered(oldRefs),
    )

    return concat(attempt$, finish$, say('replaced')).pipe(
      catchError((thrown: unknown) => {
        const failure = PlugstreamError.from(thrown, 'ERR_PLUGIN_NOT_READY', `replacing ${nameOf(request)}`)
        return concat(rollBack(failure).pipe(catchError(() => EMPTY)), say('failed', failure))
      }),
    )
  })
}

/** What ends an attempt, whatever it is at. */
function failing(
  { to, aborted$, timeoutMs, ...request }: ReplacementRequest,
  { taskEvent$, restart$, refusal$ }: ReplacementPorts,
): Observable<never> {
  const ofTask = <T extends { task: TaskRef }>(told$: Observable<T>): Observable<T> =>
    told$.pipe(filter(({ task }) => taskKey(task) === taskKey(to)))
  const what = nameOf(request)
  const notReady = (why: string): PlugstreamError =>
    new PlugstreamError('ERR_PLUGIN_NOT_READY', `${what} was not replaced: ${why}`, { retryable: true })
  return merge(
    aborted$.pipe(map(() => new PlugstreamError('ERR_ABORTED', `replacing ${what}: aborted`))),
    ofTask(refusal$).pipe(map(({ failure }) => failure)),
    ofTask(taskEvent$).pipe(
      filter(({ kind }) => kind === 'exited' || kind === 'stopping' || kind === 'stopped'),
      map((event) => notReady(`the task of alloc ${to.allocId} ${endOf(event)}`)),
    ),
    ofTask(restart$).pipe(map(({ message }) => notReady(message))),
    timer(timeoutMs).pipe(map(() => notReady(`it does not serve after ${timeoutMs} ms`))),
  ).pipe(
    take(1),
    switchMap((failure) => throwError(() => failure)),
  )
}

function endOf(event: TaskEvent): string {
  if (event.kind !== 'exited') return 'was stopped'
  const how = event.signal === null ? `exited with code ${event.code}` : `was ended by ${event.signal}`
  return event.reason === undefined ? how : `could not begin: ${event.reason}`
}

/** Completes after a time too. */
function within(timeoutMs: number, work$: Observable<unknown>): Observable<never> {
  return race(work$.pipe(ignoreElements()), timer(timeoutMs).pipe(ignoreElements()))
}

function order(task: PluginTask, begun: () => unknown = () => undefined): Observable<ReplacementWord> {
  return defer(() => {
    begun()
    return of({ order: task })
  })
}

/** Orders a task to stop, and completes when nothing is left of it. */
function stopped({ allocId, taskName }: TaskRef, ports: ReplacementPorts): Observable<ReplacementWord> {
  const key = taskKey({ allocId, taskName })
  const gone$ = defer(() =>
    ports.isThere({ allocId, taskName })
      ? ports.taskEvent$.pipe(filter(({ kind, task }) => kind === 'stopped' && taskKey(task) === key))
      : of(true),
  )
  return untilFirst(gone$, of({ order: { order: 'stop', allocId, taskName } }))
}

/** Completes when no call is in flight, or after a time; one that cannot be told of is not waited for. */
function drained(refs: readonly PluginRef[], ports: ReplacementPorts, drainMs: number): Observable<never> {
  return within(drainMs, defer(() => ports.drained(refs)).pipe(catchError(() => EMPTY)))
}

/** Completes when all of them are healthy. */
function healthOfAll(refs: readonly PluginRef[], ports: ReplacementPorts): Observable<never> {
  const each = refs.map((ref) =>
    concat(
      defer(() => ports.healthOf(ref)),
      NEVER,
    ).pipe(filter(({ healthy }) => healthy)),
  )
  return combineLatest(each).pipe(take(1), ignoreElements())
}

/** Completes after a time; fails where one of them is unhealthy before. One that others elect may be not ready. */
function stayingWell(request: ReplacementRequest, ports: ReplacementPorts, bakeMs: number): Observable<never> {
  const { toRefs, upgrade } = request
  const unwell$ = merge(...toRefs.map((ref) => defer(() => ports.healthOf(ref)))).pipe(
    filter(({ healthy, reason }) => !healthy && !(upgrade === 'elected' && reason === 'not-ready')),
    take(1),
    map(({ plugin, description }) => {
      const why = `alloc ${plugin.allocId} did not stay well: ${description}`
      throw new PlugstreamError('ERR_PLUGIN_NOT_READY', `${nameOf(request)} was not replaced: ${why}`, {
        retryable: true,
      })
    }),
  )
  return untilFirst(merge(unwell$, timer(bakeMs)))
}

/** Asks a plugin what it can do, and gives a value where that is enough. */
function verdict({ plugin, fromHalves, toRefs, force }: ReplacementRequest, connection: Connection): Observable<true> {
  if (force) return of(true)
  const ask = <T>(call: () => ObservableInput<T>): Observable<T> => defer(call).pipe(take(1), retryLostCall())
  return forkJoin({
    identity: ask(() => connection.identify()),
    halves: forkJoin(
      toRefs.map(({ type }) => ask(() => connection.fingerprint(type)).pipe(map((facts) => [type, facts] as const))),
    ),
  }).pipe(
    map(({ identity: { provider }, halves }) => {
      checkSuccessor(plugin, fromHalves, new Map(halves.map(([type, facts]) => [type, { ...facts, provider }])))
      return true as const
    }),
  )
}

/** The same where it is not ready yet: it may not be able to say; it is asked again when it is. */
function judgedIfItAnswers(judged: (connection: Connection) => Observable<unknown>) {
  return (connection: Connection): Observable<unknown> =>
    judged(connection).pipe(
      catchError((failure: unknown) =>
        failure instanceof PlugstreamError && failure.code === 'ERR_PLUGIN_CONFLICT'
          ? throwError(() => failure)
          : of(true),
      ),
    )
}

function stateOf(
  { plugin, from, to }: ReplacementRequest,
  phase: Replacement['phase'],
  failure: PlugstreamError | undefined,
  at: number,
): Replacement {
  const refOf = ({ allocId, taskName }: TaskRef): TaskRef => ({ allocId, taskName })
  return { plugin, from: refOf(from), to: refOf(to), phase, ...(failure && { failure }), at }
}

/** For people. */
function nameOf({ plugin }: Pick<ReplacementRequest, 'plugin'>): string {
  return `plugin ${JSON.stringify(plugin)}`
}
