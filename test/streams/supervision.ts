import { asyncScheduler, defer, EMPTY, finalize, map, of, type Observable, type ObservableInput } from 'rxjs'
import { PlugstreamError } from '../../lib/errors.js'
import type { HealthEvent, HealthReason } from '../../lib/plugin/health.js'
import type { PluginIdentity } from '../../lib/plugin/kind.js'
import { refOf, type PluginRef, type RegistryChange } from '../../lib/plugin/plugin.js'
import type { PluginTask, RestartRequest, TaskEvent, TaskNote } from '../../lib/task/task.js'
import { superviseTasks, type SupervisedPlugin, type SupervisionPorts } from '../../streams/supervise-tasks.js'
import type { Connection, ConnectionState } from '../../streams/values.js'
import type { MarbleHelpers } from '../testing/marbles.js'

export const task: PluginTask = { allocId: 'a', taskName: 't', isolation: 'none' }

const at = 0
/** Events of one task, by letter. `crash`: exited, and is started again; `end`: exited for good. */
export function eventsOf(of: PluginTask): Readonly<Record<string, TaskEvent>> {
  return {
    p: { kind: 'prestart', task: of, at },
    s: { kind: 'started', task: of, at },
    c: { kind: 'exited', task: of, at, code: 1, signal: null, willRestart: true },
    e: { kind: 'exited', task: of, at, code: null, signal: 'SIGKILL', willRestart: false },
    t: { kind: 'stopping', task: of, at },
    x: { kind: 'stopped', task: of, at },
  }
}

/** States of a connection by letter: what is seen while waiting for a plugin. */
const sights: Readonly<Record<string, [HealthReason, string]>> = {
  m: ['socket-missing', 'there is no socket'],
  r: ['socket-refused', 'nobody listens'],
  f: ['not-a-socket', 'a file is in its place'],
  d: ['access-denied', 'it may not be opened'],
  t: ['probe-timeout', 'it does not answer'],
  g: ['not-csi', 'it speaks something else'],
  n: ['not-ready', 'it answers not yet'],
  b: ['probe-failed', 'it answers with an error'],
  h: ['ready', 'ready'],
}

export function stateOf(letter: string, connection: Pick<Connection, 'identify'>): ConnectionState {
  const [reason, description] = sights[letter] ?? ['unknown', '']
  const healthy = reason === 'ready'
  const called = healthy ? (connection as Connection) : undefined
  return { healthy, reason, description, answers: healthy, epoch: 1, connection: called }
}

export const identity: PluginIdentity = { provider: 'ebs.example', version: '1' }

export const storeDown = new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
export const refused = new PlugstreamError('ERR_OPTION_INVALID', 'the version is too long')

interface Script {
  /** Types that the task registers. Default: one node. */
  types?: readonly string[]
  /** What is registered for the task to begin with. */
  registered?: readonly PluginRef[]
  /** States of the connection in each run, in order; the last one again for more runs. Default: healthy at once. */
  connections?: readonly string[]
  /** What each identify comes to, in order; the last one again for more. `i`: an answer. Default: an answer at once. */
  identifies?: readonly string[]
  /** What each change comes to, in order; the last one again for more. `s`: saved, `#`: the store is down, `!`: refused. Default: saved. */
  applies?: readonly string[]
  ports?: Partial<SupervisionPorts>
  /** The health of each type from when it is listened to; letters as for connections. Default: healthy at once. */
  health?: Readonly<Record<string, string>>
  /** What a failing identify fails with. */
  unwilling?: unknown
  /** Default: 100 and 300. */
  healthTimeoutMs?: number
  initTimeoutMs?: number
}

/**
 * Supervision on ports of the test's: a registry that keeps what it was asked to, instances that are as healthy as the connection was,
 * and a log of all changes with their times.
 */
export class World {
  readonly log: string[] = []
  readonly present: PluginRef[] = []
  readonly targets: string[] = []
  /** From when to when each connection was listened to. */
  readonly listened: string[] = []
  runs = 0
  readonly #script: Script
  #identifies = 0
  #applies = 0

  constructor(
    readonly helpers: MarbleHelpers,
    script: Script = {},
  ) {
    this.#script = script
    this.present.push(...(script.registered ?? []))
  }

  get plugin(): SupervisedPlugin {
    const { types = ['csi-node'], healthTimeoutMs = 100, initTimeoutMs = 300 } = this.#script
    return {
      refs: types.map((type) => ({ type, name: 'ebs', allocId: 'a' })),
      config: { healthTimeoutMs, initTimeoutMs },
      socketPath: '/run/ebs/csi.sock',
      options: { taskName: 't' },
    }
  }

  /** What comes out, in words. */
  supervise(taskEvent$: Observable<TaskEvent>): Observable<string> {
    return this.said(taskEvent$).pipe(map(words))
  }

  said(taskEvent$: Observable<TaskEvent>): Observable<TaskNote | RestartRequest> {
    const ports: SupervisionPorts = {
      configure: () => this.plugin,
      run: () => ++this.runs,
      connection: (target) => this.#connection(`${target.type} ${target.socketPath} ${target.run}`),
      apply: (change) => defer(() => this.#apply(change)),
      owned: () => [...this.present],
      healthOf: (ref) => this.helpers.cold(this.#script.health?.[ref.type] ?? 'h', healthEvents(ref)),
      release: () => defer(() => this.#say('release')),
      now: () => asyncScheduler.now(),
      ...this.#script.ports,
    }
    return superviseTasks(taskEvent$, ports, { unhealthyBeatMs: 50 })
  }

  #connection(target: string): Observable<ConnectionState> {
    this.targets.push(target)
    const marbles = nth(this.#script.connections, this.targets.length - 1) ?? 'h'
    const connection = { identify: () => this.#identify() } as Connection
    const states = Object.fromEntries(
      Object.keys(sights).map((letter) => [letter, stateOf(letter, connection)] as const),
    )
    return defer(() => {
      const from = asyncScheduler.now()
      return this.helpers
        .cold(marbles, states, new Error('no watch'))
        .pipe(finalize(() => this.listened.push(`${from}-${asyncScheduler.now()}`)))
    })
  }

  #identify(): ObservableInput<PluginIdentity> {
    const marbles = nth(this.#script.identifies, this.#identifies++)
    return marbles === undefined ? of(identity) : this.helpers.cold(marbles, { i: identity }, this.#script.unwilling)
  }

  #apply(change: RegistryChange): Observable<undefined> {
    const ref = refOf(change.kind === 'register' ? change.plugin : change.ref)
    const more =
      change.kind === 'register'
        ? ` ${change.plugin.version ?? ''}`
        : ` (${change.kind === 'deregister' ? (change.reason ?? '') : ''})`
    this.#say(`${change.kind} ${ref.type}${more}`)
    const answer = nth(this.#script.applies, this.#applies++) ?? '(s|)'
    const failure = answer.includes('!') ? refused : storeDown
    return this.helpers.cold(answer.replace('!', '#'), { s: undefined }, failure).pipe(
      map(() => {
        const index = this.present.findIndex((one) => one.type === ref.type && one.name === ref.name)
        if (change.kind === 'register' && index < 0) this.present.push(ref)
        if (change.kind === 'deregister' && index >= 0) this.present.splice(index, 1)
        return undefined
      }),
    )
  }

  #say(what: string): Observable<never> {
    this.log.push(`${asyncScheduler.now()} ${what}`)
    return EMPTY
  }
}

function healthEvents(ref: PluginRef): Record<string, HealthEvent> {
  const connection = { socketPath: '/run/ebs/csi.sock' }
  const plugin = { ...ref, ...identity, connection, options: {}, registeredAt: 0 }
  return Object.fromEntries(
    Object.entries(sights).map(([letter, [reason, description]]) => [
      letter,
      { plugin, healthy: reason === 'ready', reason, description, at: 0, final: false },
    ]),
  )
}

/** A note as `kind reason`, a request as `RESTART reason`. */
function words(said: TaskNote | RestartRequest): string {
  return 'kind' in said ? `${said.kind} ${said.reason}` : `RESTART ${said.reason}`
}

function nth<T>(list: readonly T[] | undefined, index: number): T | undefined {
  return list?.[Math.min(index, list.length - 1)]
}
