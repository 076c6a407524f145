import {
  catchError,
  concatWith,
  connect,
  defaultIfEmpty,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  finalize,
  first,
  from,
  groupBy,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  observeOn,
  of,
  queueScheduler,
  retry,
  scan,
  Subject,
  switchMap,
  take,
  takeWhile,
  tap,
  throwError,
  timeout,
  timer,
  type GroupedObservable,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { now, random } from '../lib/clock.js'
import { adoptAgainMs, killPatienceMs, stopAgainMs, stopGraceMs } from '../lib/defaults.js'
import { invalidOption, messageOf, PlugstreamError } from '../lib/errors.js'
import { fieldsOf, takeOptions } from '../lib/options.js'
import type { TaskExit, TaskSpec } from '../lib/task/driver.js'
import { step } from '../lib/task/run-step.js'
import { absentTask, type Doing, type RunInput, type TaskRun } from '../lib/task/task-run.js'
import { stateOf, type TaskRunState } from '../lib/task/task-run-state.js'
import { plainCopy, readTaskInput, sameValue, type TaskOrder } from '../lib/task/task-spec.js'
import { taskKey, type PluginTask, type TaskEvent, type TaskResources } from '../lib/task/task.js'
import type { TaskJournal } from '../lib/task/task-record.js'
import type { HostPorts } from './host-ports.js'
import { outlive } from './operators/outlive.js'
import { retryStoreWrite } from './operators/retry-store-write.js'

/** What the runner needs of a run, of a driver and of its host; every `TaskHandle`, `TaskDriver` and `HostPorts` is one. */
export interface RunHandle {
  readonly pid: number | undefined
  readonly exit: ObservableInput<TaskExit>
  stop(graceMs: number): ObservableInput<TaskExit>
  release(): void
  look?(): void
}
export interface RunDriver {
  start(spec: TaskSpec, resources: TaskResources, journal?: TaskJournal): ObservableInput<RunHandle>
  /**
   * A run of the very same task that an earlier host has left, where the driver has such: it goes on (`adopted`), and nothing is prepared or
   * started. What is `retryable` of its failures is tried again for as long as it takes; another one is that of a start.
   */
  adopt?(spec: TaskSpec, journal?: TaskJournal): ObservableInput<RunHandle | undefined>
}
export interface RunPorts extends Omit<HostPorts, 'prepare'> {
  prepare(task: PluginTask): ObservableInput<TaskResources>
}

export interface RunTasksInit {
  /**
   * What becomes of the tasks when the runner is left: `stop` ends them, and `host.close()` waits for it; `keep` lets them go on
   * without a runner. Default: `stop`.
   */
  onClose?: 'stop' | 'keep' | undefined
  /** Is told what the runner does with each task, and why: a Subject, for example. Beyond the events this says which are `held`. */
  state?: { next(state: TaskRunState): void } | undefined
  /** Unix ms. Default: the system's time. */
  now?: (() => number) | undefined
  /** In [0, 1). Default: chance. */
  random?: (() => number) | undefined
}

const initFields = fieldsOf<RunTasksInit>({ onClose: true, state: true, now: true, random: true })

/**
 * Tasks to run, and orders about them, flow in; what happens to the tasks flows out. Cold: each subscription runs tasks of its own,
 * and leaving it ends them (`onClose`).
 *
 * A task is known by its alloc and name. Given again, equal, it changes nothing; given otherwise, its run is ended and the new one
 * begins, with nothing counted against it. An order to a task that is not there means nothing.
 *
 * Every start is told (`prestart`), prepared and begun; one that cannot be prepared or begun is told as an exit without code or signal,
 * with its reason, and falls under the same policy as any other failure. A restart that supervision asks for (`ports.restart$`) counts
 * like one after a crash, is not followed where the policy is `never`, and never concerns a later run. A task out of attempts is held:
 * `exited` with `willRestart: false`, the state `held` with its reason, and nothing more until it is ordered to `resume` or `restart`,
 * or given anew. `stopped` is told of a task that was ordered to stop, or that its policy does not bring back; it is forgotten then.
 *
 * The host's own orders (`ports.order$`: a task that is to take the place of another) are followed like those that flow in.
 *
 * The source's end ends no task: output completes when the last one has stopped, and the host has no more to order. Nor does its failure,
 * which is passed on then. Input that cannot be run is told as `refused` to `state` and to `ports.problem`, and leaves everything else alone.
 *
 * @throws ERR_OPTION_INVALID in the call itself for what `init` cannot have.
 * @example
 * const order$ = new Subject<TaskOrder>()
 * runTasks(merge(of(spec), order$), processDriver(), ports)
 * order$.next({ order: 'restart', allocId: 'ebs-1', taskName: 'driver' })
 */
export function runTasks(
  input$: Observable<TaskSpec | TaskOrder>,
  driver: RunDriver,
  ports: RunPorts,
  init: RunTasksInit = {},
): Observable<TaskEvent> {
  const { onClose = 'stop' } = takeOptions('init', init, initFields)
  if (!['stop', 'keep'].includes(onClose)) throw invalidOption('onClose', onClose, 'stop or keep')
  return defer(() => {
    const stopped$ = new Subject<string>()
    let failed$: Observable<never> = EMPTY
    const given$ = input$.pipe(
      catchError((failure: unknown) => {
        failed$ = throwError(() => failure)
        return EMPTY
      }),
    )
    const ordered$ = (ports.order$ ?? EMPTY).pipe(catchError(() => EMPTY))
    return merge(given$, ordered$).pipe(
      mergeMap((input) => accepted(input as TaskSpec | TaskOrder, ports, init)),
      // Whoever is told something and answers at once is heard after everybody was told.
      observeOn(queueScheduler),
      groupBy((input: TaskSpec | TaskOrder) => taskKey(input), {
        duration: ({ key }) => stopped$.pipe(filter((stopped) => stopped === key)),
      }),
      mergeMap((task$) => runTask(task$, driver, ports, init, () => stopped$.next(task$.key))),
      concatWith(defer(() => failed$)),
    )
  })
}

/** Input as it is now: its giver may change the object and give it again. None where it cannot be run. */
function accepted(input: TaskSpec | TaskOrder, ports: RunPorts, init: RunTasksInit): (TaskSpec | TaskOrder)[] {
  try {
    return [readTaskInput(plainCopy(input))]
  } catch (failure) {
    const at = (init.now ?? now)()
    tell(init.state, { task: input as TaskSpec, phase: 'refused', reason: messageOf(failure), restarts: 0, at })
    ports.problem?.(PlugstreamError.from(failure, 'ERR_OPTION_INVALID', 'a task was refused'), input)
    return []
  }
}

/** An observer that throws disturbs no task; its throw is uncaught, as any subscriber's. */
function tell(state: RunTasksInit['state'], value: TaskRunState): void {
  try {
    state?.next(value)
  } catch (failure) {
    void Promise.reject(failure)
  }
}

type Input = RunInput<RunHandle>
type Run = TaskRun<RunHandle>

/** One task, from its first spec until it has stopped. Each step is whole before the next begins, whatever it sets off. */
function runTask(
  task$: GroupedObservable<string, TaskSpec | TaskOrder>,
  driver: RunDriver,
  ports: RunPorts,
  init: RunTasksInit,
  forget: () => void,
): Observable<TaskEvent> {
  return defer(() => {
    const clock = init.now ?? now
    const chance = init.random ?? random
    const done$ = new Subject<Input>()
    let last: Run = absentTask
    let begun$: Observable<RunHandle> = EMPTY
    const work = (doing: Doing<RunHandle>): Observable<Input> => {
      switch (doing.kind) {
        case 'prepare':
          return defer(() => (begun$ = adopting(driver, doing.spec, ports))).pipe(
            retry({ delay: lookAgain(ports) }),
            map((handle) => begun(handle, true)),
            defaultIfEmpty(undefined),
            switchMap((input) => (input ? of(input) : preparing(ports, doing.spec))),
            catchError(failed),
          )
        case 'start':
          return defer(() => (begun$ = beginning(driver, doing.spec, doing.resources, ports))).pipe(
            retryStoreWrite(), // a store that cannot put it on record is no fault of the task
            map((handle) => begun(handle, false)),
            catchError(failed),
          )
        case 'run':
          return merge(exiting(doing.handle), looking(doing.handle, task$.key, ports))
        case 'stop':
          return merge(exiting(doing.handle), clearing(doing.handle, doing.graceMs))
        case 'wait':
          return timer(Math.max(0, doing.dueAt - clock())).pipe(map((): Input => ({ kind: 'due' })))
        case 'nothing':
        case 'hold':
          return EMPTY
        case 'end':
          return forgetting(last.spec, ports)
      }
    }
    const wish$ = task$.pipe(
      map((input): Input => ('order' in input ? { kind: 'order', order: input.order } : { kind: 'spec', spec: input })),
    )
    const request$ = ports.restart$.pipe(
      filter(({ task }) => taskKey(task) === task$.key),
      map(({ message }): Input => ({ kind: 'request', message })),
      catchError(() => EMPTY),
      observeOn(queueScheduler),
    )
    return merge(wish$, request$, done$.pipe(observeOn(queueScheduler))).pipe(
      scan((run: Run, input) => step(run, input, { at: clock(), random: chance() }), absentTask as Run),
      distinctUntilChanged(),
      takeWhile((run) => run.doing.kind !== 'end', true),
      tap((run) => {
        last = run
        if (run.doing.kind === 'end') forget()
      }),
      connect((run$) =>
        merge(
          run$.pipe(
            map((run) => stateOf(run)),
            distinctUntilChanged((a, b) => sameValue(a, b)),
            tap((state) => state && tell(init.state, { ...state, at: clock() })),
            ignoreElements(),
          ),
          run$.pipe(mergeMap(({ events }) => events)),
          run$.pipe(
            map(({ doing }) => doing),
            distinctUntilChanged(),
            switchMap(work),
            tap((input) => done$.next(input)),
            ignoreElements(),
          ),
        ),
      ),
      finalize(() => leave(last, begun$, init.onClose ?? 'stop', ports)),
    )
  })
}

function preparing(ports: RunPorts, spec: TaskSpec): Observable<Input> {
  return defer(() => ports.prepare(spec)).pipe(
    first(),
    map((resources): Input => ({ kind: 'prepared', resources })),
    catchError(failed),
  )
}

/** Nothing where there is nothing to take over; it is left no more than a start. */
function adopting(driver: RunDriver, spec: TaskSpec, { journal }: RunPorts): Observable<RunHandle> {
  if (!driver.adopt) return EMPTY
  return defer(() => driver.adopt?.(spec, journal) ?? EMPTY).pipe(
    first(),
    mergeMap((handle) => (handle ? of(handle) : EMPTY)),
    outlive(),
  )
}

/**
 * A driver that cannot look now is asked again, which is told as a problem: the run may be there and serve, so that nothing else may
 * begin, and no end of it can be told.
 */
function lookAgain(ports: RunPorts): (failure: unknown, count: number) => Observable<unknown> {
  return (failure, count) => {
    if (!(failure instanceof PlugstreamError) || !failure.retryable) return throwError(() => failure)
    if (count === 1) ports.problem?.(failure)
    return timer(adoptAgainMs)
  }
}

function begun(handle: RunHandle, adopted: boolean): Input {
  return { kind: 'began', handle, pid: handle.pid, adopted }
}

/** What has begun when everybody has left must be ended or let go. */
function beginning(
  driver: RunDriver,
  spec: TaskSpec,
  resources: TaskResources,
  { journal }: RunPorts,
): Observable<RunHandle> {
  return defer(() => driver.start(spec, resources, journal)).pipe(first(), outlive())
}

function failed(failure: unknown): Observable<Input> {
  return of({ kind: 'failed', message: messageOf(failure) })
}

function exiting(handle: RunHandle): Observable<Input> {
  return from(handle.exit).pipe(
    first(),
    catchError(() => of({ code: null, signal: null })),
    map((exit): Input => ({ kind: 'exited', exit })),
  )
}

/** Its plugin does not answer any more: that may be the first sign of its end. */
function looking(handle: RunHandle, key: string, { unwell$ = EMPTY }: RunPorts): Observable<never> {
  return unwell$.pipe(
    filter((task) => taskKey(task) === key),
    tap(() => handle.look?.()),
    catchError(() => EMPTY),
    ignoreElements(),
  )
}

/** What cannot be taken off the record is found to be of nothing by the next host. */
function forgetting(task: TaskSpec | undefined, { journal }: RunPorts): Observable<never> {
  return defer(() => (task && journal?.delete(task)) ?? EMPTY).pipe(
    catchError(() => EMPTY),
    ignoreElements(),
  )
}

/** A driver that cannot end a run is asked again: nothing else may begin while something of it may be left. */
function clearing(handle: RunHandle, graceMs: number): Observable<Input> {
  return defer(() => handle.stop(graceMs)).pipe(
    first(),
    retry({ delay: () => timer(stopAgainMs) }),
    tap(() => handle.release()),
    map((exit): Input => ({ kind: 'cleared', exit })),
  )
}

/**
 * The runner is left: a run that is being ended, or is not to be kept, is ended all the same. Whoever waits for that is not kept waiting
 * for a process that cannot be ended; the work goes on.
 */
function leave(
  { spec, doing, after }: Run,
  begun$: Observable<RunHandle>,
  onClose: 'stop' | 'keep',
  ports: RunPorts,
): void {
  if (doing.kind === 'prepare' ? begun$ === EMPTY : !['start', 'run', 'stop'].includes(doing.kind)) return
  const graceMs = spec?.stopGraceMs ?? stopGraceMs
  const handle$ = !('handle' in doing) ? begun$.pipe(catchError(() => EMPTY)) : of(doing.handle)
  const keeps = onClose === 'keep' && after === undefined
  const work$ = handle$.pipe(
    mergeMap((handle) =>
      defer(() => (keeps ? EMPTY : handle.stop(graceMs))).pipe(
        take(1),
        concatWith(keeps ? EMPTY : forgetting(spec, ports)),
        finalize(() => handle.release()),
      ),
    ),
    outlive(),
    timeout({ first: graceMs + killPatienceMs, with: () => throwError(() => notGone(spec)) }),
  )
  const work = lastValueFrom(work$, { defaultValue: undefined })
  work.catch(() => undefined) // told by whoever waits
  ports.waitOnClose?.(work)
}

function notGone(task: TaskSpec | undefined): PlugstreamError {
  return new PlugstreamError('ERR_TIMEOUT', `task ${task?.taskName} of alloc ${task?.allocId} cannot be ended`)
}
