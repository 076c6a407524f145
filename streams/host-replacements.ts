import {
  catchError,
  defer,
  filter,
  from,
  fromEvent,
  map,
  NEVER,
  Observable,
  of,
  Subject,
  switchMap,
  takeWhile,
  tap,
} from 'rxjs'
import { now } from '../lib/clock.js'
import type { Timing } from '../lib/defaults.js'
import { invalidOption, PlugstreamError } from '../lib/errors.js'
import { checkSignal, fieldsOf, takeOptions } from '../lib/options.js'
import type { CallHolds } from '../lib/plugin/call-holds.js'
import type { PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { PluginChannel } from '../lib/plugin/kind.js'
import { instanceKey, refOf, type PluginInfo, type PluginRef } from '../lib/plugin/plugin.js'
import { nameOf } from '../lib/plugin/plugin-clients.js'
import type { Replacement } from '../lib/task/replacement.js'
import { takeTask, type TaskPlugin } from '../lib/task/task-plugin.js'
import { plainCopy, type TaskOrder } from '../lib/task/task-spec.js'
import { taskKey, type PluginTask, type RestartRequest, type TaskEvent, type TaskRef } from '../lib/task/task.js'
import { Turns } from '../lib/volume/turns.js'
import { firstValue } from './operators/first-value.js'
import type { PresentState } from './present-state.js'
import type { Registry } from './registry.js'
import { replacements, type ReplacementRequest, type ReplacementWord } from './replacements.js'
import type { TaskStateChange } from './task-states.js'
import type { Connection, ConnectionState, ConnectionTarget } from './values.js'

/** How a task is replaced. */
export interface ReplaceOptions {
  /** Replaces the task also where something would be lost by it. Default: false. */
  force?: boolean | undefined
  /** Gives it up, for as long as the old task is there: everything is then put back as it was. */
  signal?: AbortSignal | undefined
}

const replaceFields = fieldsOf<ReplaceOptions>({ force: true, signal: true })

/** What the replacements of a host stand on. */
export interface ReplacementsInit {
  taskEvent$: Observable<TaskEvent>
  restart$: Observable<RestartRequest>
  /** The state of tasks, and the last event of each that has not stopped. */
  tasks: PresentState<TaskStateChange>
  told: PresentState<TaskEvent>
  registry: Registry
  health: PresentState<HealthEvent>
  fingerprint: PresentState<PluginFingerprint>
  holds: CallHolds
  /** The plugin of a task, without a claim. @throws what its configuration is refused with. */
  pluginOf: (task: PluginTask) => TaskPlugin | undefined
  connection: (target: ConnectionTarget) => Observable<ConnectionState>
  channelOf: (ref: PluginRef) => PluginChannel | undefined
}

/** The replacements of a host: what asks for them, what they ask for, and what supervision asks them. */
export class HostReplacements {
  readonly order$ = new Subject<PluginTask | TaskOrder>()
  readonly state$ = new Subject<Replacement>()
  readonly #request$ = new Subject<ReplacementRequest>()
  readonly #refusal$ = new Subject<{ task: TaskRef; failure: PlugstreamError }>()
  readonly #judges = new Map<string, (connection: Connection) => Observable<unknown>>()
  readonly #turns = new Turns(1)
  #isClosed = false
  readonly #init: ReplacementsInit

  constructor(init: ReplacementsInit) {
    this.#init = init
  }

  /** What comes of the replacements; to be told to `heard` for as long as the host is open. */
  words(timing: Pick<Timing, 'bakeMs' | 'drainMs' | 'holdMs'>): Observable<ReplacementWord> {
    const { taskEvent$, restart$, health, told } = this.#init
    const ports = {
      taskEvent$,
      restart$,
      refusal$: this.#refusal$,
      isThere: (task: TaskRef) => told.get(taskKey(task)) !== undefined,
      judge: (task: PluginTask, verdict: (connection: Connection) => Observable<unknown>) => this.#judge(task, verdict),
      standby: (task: PluginTask) => this.#standby(task),
      healthOf: (ref: PluginRef) => health.of(instanceKey(ref)),
      deregistered: (refs: readonly PluginRef[]) =>
        this.#init.registry.plugins$.pipe(takeWhile(() => refs.some((ref) => this.#init.registry.get(ref)))),
      hold: (refs: readonly PluginRef[]) => this.#hold(refs),
      drained: (refs: readonly PluginRef[]) => this.#drained(refs),
      now,
    }
    return replacements(this.#request$, ports, timing)
  }

  readonly heard = (word: ReplacementWord): void => {
    if ('order' in word) this.order$.next(word.order)
    else this.state$.next(word.state)
  }

  close(): void {
    this.#isClosed = true
    for (const subject$ of [this.#request$, this.order$, this.state$, this.#refusal$]) subject$.complete()
  }

  /** Whoever runs the tasks could not take one. */
  refused(task: TaskRef, failure: PlugstreamError): void {
    this.#refusal$.next({ task, failure })
  }

  /** Supervision asks whether the plugin of a task may be registered: it may, unless it is to be judged first. */
  admit(task: TaskRef, connection: Connection): Observable<unknown> {
    return this.#judges.get(taskKey(task))?.(connection) ?? of(true)
  }

  /** See `PluginHost.replace`. */
  async replace(given: PluginTask, options: ReplaceOptions = {}): Promise<readonly PluginInfo[]> {
    const { force = false, signal = new AbortController().signal } = takeOptions('options', options, replaceFields)
    if (typeof (force as unknown) !== 'boolean') throw invalidOption('force', force, 'true or false')
    checkSignal(signal)
    const to = plainCopy(takeTask(given))
    const plugin = this.#init.pluginOf(to)
    if (!plugin) throw invalidOption('task', given, 'a plugin')
    const { id } = plugin.config
    const doing = `replacing plugin ${JSON.stringify(id)}`
    try {
      return await this.#turns.take(id, signal, async () => {
        if (this.#isClosed) throw new PlugstreamError('ERR_CLOSED', `${doing}: the host was closed`)
        const request = this.#requestOf(to, plugin, force, signal)
        const isLast = ({ plugin: of, phase }: Replacement) => of === id && (phase === 'replaced' || phase === 'failed')
        const last = firstValue(this.state$.pipe(filter(isLast)), doing)
        this.#request$.next(request)
        const { failure } = await last
        if (failure) throw failure
        return plugin.refs.flatMap((ref) => this.#init.registry.get(ref) ?? [])
      })
    } catch (failure) {
      throw PlugstreamError.from(failure, 'ERR_ABORTED', doing)
    }
  }

  /** @throws where there is nothing to be replaced, or nobody who would do it. */
  #requestOf(to: PluginTask, plugin: TaskPlugin, force: boolean, signal: AbortSignal): ReplacementRequest {
    const { registry, told, fingerprint, pluginOf } = this.#init
    const { config, refs } = plugin
    const what = `plugin ${JSON.stringify(config.id)}`
    if (!this.order$.observed)
      throw new PlugstreamError('ERR_USAGE', `nobody follows order$, so that ${what} cannot be replaced`)
    if (told.get(taskKey(to)))
      throw invalidOption(
        'task.allocId',
        to.allocId,
        'one that has no task of this name: the old one goes on for a while',
      )
    const current = refs.flatMap(({ type, name }) => registry.instances(type, name))[0]
    const taskName = current?.options['taskName'] ?? ''
    const old = current && told.get(taskKey({ allocId: current.allocId, taskName }))?.task
    if (!current || !old)
      throw new PlugstreamError(
        'ERR_PLUGIN_UNKNOWN',
        `${what} ${current ? `is served by alloc ${current.allocId}, of which no task was told` : 'is not registered'}: there is nothing to replace`,
      )
    const halves = registry
      .instancesOf(old.allocId)
      .filter(({ name, options }) => name === config.id && options['taskName'] === taskName)
    const overlaps = config.overlaps === true && pluginOf(old)?.config.overlaps === true
    return {
      plugin: config.id,
      from: old,
      to,
      fromHalves: halves.map((half) => {
        const ref = refOf(half)
        return { ref, provider: half.provider, facts: fingerprint.get(instanceKey(ref)) }
      }),
      toRefs: refs,
      upgrade: to.upgrade ?? (overlaps ? 'overlap' : 'exclusive'),
      force,
      timeoutMs: config.healthTimeoutMs + config.initTimeoutMs,
      aborted$: signal.aborted ? of(true) : fromEvent(signal, 'abort'),
    }
  }

  #judge(task: TaskRef, verdict: (connection: Connection) => Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      const key = taskKey(task)
      this.#judges.set(key, (connection) =>
        verdict(connection).pipe(
          tap((admitted) => subscriber.next(admitted)),
          catchError((failure: unknown) => {
            subscriber.error(failure)
            return NEVER // the task is about to be stopped
          }),
        ),
      )
      return () => this.#judges.delete(key)
    })
  }

  #standby(task: PluginTask): Observable<Connection> {
    const { tasks, connection, pluginOf } = this.#init
    const plugin = pluginOf(task)
    const type = plugin?.refs[0]?.type
    if (!plugin || type === undefined) return NEVER
    const { socketPath } = plugin
    return tasks.of(taskKey(task)).pipe(
      filter(({ state }) => state.phase === 'running'),
      switchMap(({ state: { run } }) => connection({ type, socketPath, run })),
      filter(({ reason }) => reason === 'not-ready'),
      map((state) => state.connection),
      filter((one) => one !== undefined),
    )
  }

  #hold(refs: readonly PluginRef[]): Observable<never> {
    return new Observable(() => {
      const letGo = [...new Set(refs.map(nameOf))].map((name) => this.#init.holds.hold(name))
      return () => letGo.forEach((go) => go())
    })
  }

  #drained(refs: readonly PluginRef[]): Observable<unknown> {
    return defer(() => from(Promise.all(refs.map(async (ref) => this.#init.channelOf(ref)?.idle?.()))))
  }
}
