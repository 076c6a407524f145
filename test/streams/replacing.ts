import { asyncScheduler, EMPTY, finalize, ignoreElements, merge, mergeMap, NEVER, Observable, of, Subject, tap, timer } from 'rxjs' // prettier-ignore
import type { PlugstreamError } from '../../lib/errors.js'
import type { HealthEvent } from '../../lib/plugin/health.js'
import { taskKey, type RestartRequest, type TaskEvent } from '../../lib/task/task.js'
import { replacements, type ReplacementPorts, type ReplacementRequest, type ReplacementWord } from '../../streams/replacements.js' // prettier-ignore
import type { MarbleHelpers } from '../testing/marbles.js'
import { healthEvent, pluginInfo, pluginTask } from './support/values.js'

export const timing = { bakeMs: 10, drainMs: 5, holdMs: 50 }

const old = pluginTask({ allocId: 'old' })
const young = pluginTask({ allocId: 'new' })
export const refOf = (allocId: string) => ({ type: 'csi-node', name: 'ebs', allocId })

export function request(overrides: Partial<ReplacementRequest> = {}): ReplacementRequest {
  return {
    plugin: 'ebs',
    from: old,
    to: young,
    fromHalves: [{ ref: refOf('old'), provider: 'ebs.csi', facts: undefined }],
    toRefs: [refOf('new')],
    upgrade: 'overlap',
    force: false,
    timeoutMs: 200,
    aborted$: NEVER,
    ...overrides,
  }
}

const health = (allocId: string): Record<string, HealthEvent> => {
  const plugin = pluginInfo({ allocId })
  return {
    h: healthEvent({ plugin }),
    n: healthEvent({ plugin, healthy: false, reason: 'not-ready', description: 'it answers not yet' }),
    u: healthEvent({ plugin, healthy: false, reason: 'probe-failed', description: 'it is sick' }),
  }
}

const happenings: Record<string, TaskEvent> = {
  s: { kind: 'started', task: young, at: 0 },
  c: { kind: 'exited', task: young, at: 0, code: 1, signal: null, willRestart: true },
  k: { kind: 'exited', task: young, at: 0, code: null, signal: 'SIGKILL', willRestart: false },
  b: { kind: 'exited', task: young, at: 0, code: null, signal: null, willRestart: true, reason: 'no such program' },
  t: { kind: 'stopping', task: young, at: 0 },
  o: { kind: 'exited', task: old, at: 0, code: 1, signal: null, willRestart: true },
  x: { kind: 'stopped', task: old, at: 0 },
}

/** What each port does, as marbles from when it is asked. */
export interface Script {
  /** Events of tasks, by letter, besides those that orders lead to. */
  events?: string
  /** How long the tasks take to stop. */
  stopMs?: Readonly<Record<string, number>>
  judge?: string
  standby?: string
  healthOf?: Readonly<Record<'old' | 'new', string>>
  drained?: string
  restart?: string
  refusal?: PlugstreamError
  ports?: Partial<ReplacementPorts>
}

/** Replacements on ports of the test's, with a runner that follows orders. Everything is in `log`, in order and with its time. */
export class World {
  readonly log: string[] = []
  readonly #event$ = new Subject<TaskEvent>()
  readonly #stopped = new Set<string>()

  constructor(
    readonly helpers: MarbleHelpers,
    readonly script: Script = {},
  ) {}

  /** What comes of requests; logged as it comes. */
  replace(request$: Observable<ReplacementRequest>): Observable<ReplacementWord> {
    const { helpers, script } = this
    const { events = '-', judge = '--a', standby = '-', drained = '-|', restart = '-', healthOf } = script
    const scripted$ = helpers.hot(events, happenings, new Error('no events'))
    const restarted: RestartRequest = { task: young, reason: 'socket-missing', message: 'not healthy after 100 ms' }
    const gone = ({ kind, task }: TaskEvent): unknown => kind === 'stopped' && this.#stopped.add(taskKey(task))
    const ports: ReplacementPorts = {
      taskEvent$: merge(scripted$.pipe(tap(gone)), this.#event$),
      isThere: (task) => !this.#stopped.has(taskKey(task)),
      restart$: helpers.hot(restart, { r: restarted }),
      refusal$: script.refusal ? timer(3).pipe(mergeMap(() => [{ task: young, failure: script.refusal! }])) : NEVER,
      judge: () => helpers.cold(judge, { a: true }, new Error('it may not be')),
      standby: () => helpers.cold(standby, { s: {} as never }),
      healthOf: ({ allocId }) =>
        helpers.cold(healthOf?.[allocId as 'old' | 'new'] ?? '---h', health(allocId), new Error('no health')),
      deregistered: () => EMPTY,
      hold: () => this.#holding(),
      drained: () => helpers.cold(drained),
      now: () => asyncScheduler.now(),
      ...script.ports,
    }
    return replacements(request$, ports, timing).pipe(
      tap((word) => this.#note(words(word))),
      mergeMap((word) => merge(of(word), this.#follow(word))),
    )
  }

  /** A runner: what is ordered to stop has stopped after a while. */
  #follow(word: ReplacementWord): Observable<never> {
    if (!('order' in word)) return EMPTY
    if (!('order' in word.order)) {
      this.#stopped.delete(taskKey(word.order))
      return EMPTY
    }
    const { allocId, taskName } = word.order
    const task = pluginTask({ allocId, taskName })
    return timer(this.script.stopMs?.[task.allocId] ?? 2).pipe(
      tap(() => {
        this.#stopped.add(taskKey(task))
        this.#event$.next({ kind: 'stopped', task, at: 0 })
      }),
      ignoreElements(),
    )
  }

  #holding(): Observable<never> {
    return new Observable<never>(() => this.#note('hold')).pipe(finalize(() => this.#note('let go')))
  }

  #note(what: string): void {
    this.log.push(`${asyncScheduler.now()} ${what}`)
  }
}

function words(word: ReplacementWord): string {
  if ('state' in word) {
    const { phase, failure } = word.state
    return failure ? `${phase}: ${failure.code} ${failure.message}` : phase
  }
  return 'order' in word.order ? `${word.order.order} ${word.order.allocId}` : `start ${word.order.allocId}`
}
