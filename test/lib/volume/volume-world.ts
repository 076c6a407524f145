import { mock } from 'node:test'
import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import type { Claim } from '../../../lib/volume/volume-record.js'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { FakePlugin, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { buryMs, MortalHost, type Death, type SaveFault } from './mortal.js'

/** What somebody asks for, and perhaps gives up. Moments are in turns of the event loop, each of which takes a ms. */
export interface Wish {
  kind: 'mount' | 'unmount'
  volume: number
  alloc: number
  namespace: string
  readonly: boolean
  comesAt: number
  givesUpAfter: number | undefined
  by: 'signal' | 'time'
}

/** Some wishes, with what goes wrong meanwhile; then a quiet point. */
export interface Burst {
  wishes: readonly Wish[]
  faults: readonly { rpc: string; outcome: 'final' | 'unknown'; isDone: boolean }[]
  hangs: readonly { rpc: string; endsAt: number; isDeaf: boolean }[]
  saveFails: SaveFault | undefined
  /** It is back at the quiet point. */
  pluginLeavesAt: number | undefined
  /** The volume whose file system dies in the midst of it. */
  dies: number | undefined
  /** When somebody else unmounts something. */
  losesAt: number | undefined
  hostDies: Death | undefined
  hostClosesAt: number | undefined
  /** What becomes of a host that outlives all that is asked of it. */
  end: 'none' | 'killed' | 'closed'
  /** What becomes of the machine before there is a host again. */
  machine: 'goes on' | 'loses a mount' | 'starts anew'
  /** It thinks that it has what it had before a start of the machine. */
  pluginHasRecord: boolean
  /** What is left over is done again at once, and else after its pauses. */
  isAskedToSettle: boolean
}

/** Whether a use is held. Nobody was there to hear of what is open, or what was heard leaves it so. */
type Held = 'yes' | 'no' | 'open'

/** What became of a wish. */
type Answer = 'done' | 'never begun' | 'not saved' | 'given up' | 'failed' | 'unheard'

const keyOf = ({ volume, alloc, namespace, readonly }: Wish): string =>
  `${namespace}/v${volume} a${alloc} ${readonly ? 'ro' : 'rw'}`

const request = ({ volume, alloc, namespace, readonly }: Wish): MountRequest => ({
  plugin: 'disk',
  volumeId: `v${volume}`,
  allocId: `a${alloc}`,
  namespace,
  access: { kind: 'mount', accessMode: 'MULTI_NODE_MULTI_WRITER', readonly },
})

const turnMs = 1

/** More turns than anything takes here, pauses before it is done again included: what is not so by then, never will be. */
const manyTurns = 20_000

/** What must be so after a wish, by what was so before it and what became of it. `isGone`: the host did not outlive the burst. */
function after(kind: Wish['kind'], before: Held, answer: Answer, isGone: boolean): Held {
  if (answer === 'never begun') return before
  if (kind === 'mount') {
    if (answer === 'done' || before === 'yes') return 'yes'
    // Its undoing is on record before it is told that it failed, unless that cannot be saved; who gives up is told at once.
    const isUndone = answer === 'failed' || (!isGone && answer !== 'unheard')
    return isUndone ? before : 'open'
  }
  if (answer === 'done' || before === 'no') return 'no'
  const isBegun = answer === 'failed' || (!isGone && answer === 'given up')
  return isBegun ? 'no' : 'open'
}

/** A machine with a plugin and one host after another; what it must have; and time that passes by the turn. */
export class World implements AsyncDisposable {
  readonly #plugin = new FakePlugin()
  readonly #records = new Map<string, string>()
  readonly #model = new Map<string, Held>()
  #mortal = new MortalHost(this.#plugin, undefined)
  #host: FakeHost | undefined

  constructor() {
    mock.timers.enable({ apis: ['setTimeout'] })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#passUntil(this.#host?.close(buryMs))
    mock.timers.reset()
  }

  async play(burst: Burst): Promise<void> {
    const {
      wishes,
      faults,
      hangs,
      saveFails,
      pluginLeavesAt,
      dies,
      losesAt,
      hostDies,
      hostClosesAt,
      end: lastly,
    } = burst
    const host = await this.#opened()
    for (const { rpc, outcome, isDone } of faults)
      this.#plugin.fail(rpc, (_, effect) => {
        if (isDone) effect()
        throw rpcFailure('INTERNAL', outcome)
      })
    const ends = hangs.map(({ rpc, endsAt, isDeaf }) => ({ at: endsAt, end: this.#plugin.hang(rpc, isDeaf) }))
    this.#mortal.failToSave(saveFails)
    if (hostDies) this.#mortal.dieAt(hostDies)

    const answers: Answer[] = wishes.map(() => 'unheard')
    let left = wishes.length
    let closed: Promise<void> | undefined
    for (let turn = 0; left > 0 && !this.#mortal.isDead; turn++) {
      for (const { at, end } of ends) if (at === turn) end()
      if (turn === pluginLeavesAt) this.#plugin.leave()
      if (turn === losesAt) this.#lose()
      if (turn === 10 && dies !== undefined) {
        this.#plugin.kill(`v${dies}`)
        host.manager.pluginReady('disk')
      }
      wishes.forEach((one, at) => {
        if (one.comesAt !== turn) return
        void ask(host, one).then((answer) => {
          left--
          if (!this.#mortal.isDead) answers[at] = answer
        })
      })
      if (turn === hostClosesAt) closed = host.close()
      // Nobody waits for ever for a plugin that was killed: it is back some time.
      if (turn > 100) this.#calm()
      await pass()
    }
    if (lastly === 'killed') this.#mortal.die()
    if (lastly === 'closed') closed ??= host.close()
    const isGone = this.#mortal.isDead || closed !== undefined
    if (!isGone) this.#mortal.spare()
    this.#calm()
    if (closed && !this.#mortal.isDead) await this.#passUntil(Promise.race([closed, this.#mortal.died]))
    if (isGone) {
      await this.#passUntil(host.close(buryMs))
      this.#host = undefined
      this.#change(burst)
    }
    // Wishes for one volume have their turns in the order in which they came.
    const order = wishes.map((_, at) => at).sort((a, b) => wishes[a]!.comesAt - wishes[b]!.comesAt || a - b)
    const isUnsure = isGone && saveFails !== undefined
    for (const at of order) {
      const key = keyOf(wishes[at]!)
      const answer: Answer = isUnsure && answers[at] === 'failed' ? 'given up' : (answers[at] ?? 'unheard')
      this.#model.set(key, after(wishes[at]!.kind, this.#model.get(key) ?? 'no', answer, isGone))
    }
    await this.#look(burst.isAskedToSettle)
  }

  /** What happens to the machine while there is no host. */
  #change({ machine, pluginHasRecord }: Burst): void {
    if (machine === 'starts anew') return this.#plugin.reboot(pluginHasRecord)
    if (machine === 'loses a mount') this.#lose()
  }

  #lose(): void {
    const [path] = this.#plugin.published.keys()
    if (path !== undefined) this.#plugin.lose(path)
  }

  async #opened(): Promise<FakeHost> {
    if (this.#host) return this.#host
    this.#mortal = new MortalHost(this.#plugin, undefined)
    this.#host = await this.#mortal.open(this.#records)
    this.#host.manager.pluginReady('disk')
    return this.#host
  }

  /** Nothing goes wrong any more. */
  #calm(): void {
    this.#plugin.mishaps.clear()
    this.#plugin.endHangs()
    this.#plugin.comeBack()
    this.#mortal.failToSave(undefined)
  }

  /** A quiet point: everything well, and everything that was left over done. */
  async #look(isAsked: boolean): Promise<void> {
    const host = await this.#opened()
    const { manager, records } = host
    const claims = () =>
      manager.list().flatMap(({ namespace, volumeId, claims: all }) =>
        all.map((claim) => ({
          ...claim,
          volume: `${namespace}/${volumeId}`,
          key: `${namespace}/${volumeId} ${claim.allocId} ${claim.access.readonly ? 'ro' : 'rw'}`,
        })),
      )
    const isQuiet = (): boolean =>
      this.#mortal.isIdle &&
      // A save that failed may have been kept: it is put right after a pause.
      recorded(records) ===
        JSON.stringify(
          claims()
            .map(({ path }) => path)
            .sort(),
        ) &&
      records.size === manager.list().length &&
      manager.list().every(({ claims: all, problem }) => all.length > 0 && problem === undefined) &&
      claims().every(({ phase, problem }) => phase === 'stale' || (phase === 'mounted' && problem === undefined))
    if (isAsked) manager.pluginReady('disk')
    await this.#until(isQuiet, () => JSON.stringify(manager.list()))
    // What is dead is told, and made anew for who asks for it.
    manager.pluginReady('disk')
    const isFound = (): boolean =>
      claims().every(
        ({ phase, path }) =>
          phase === 'stale' || (this.#plugin.published.has(path) && !this.#plugin.pathStates.has(path)),
      )
    await this.#until(
      () => isQuiet() && isFound(),
      () => `${JSON.stringify([...this.#plugin.pathStates.keys()])} not found dead`,
    )
    for (const { phase, volume, allocId, access } of claims()) {
      const [namespace = '', volumeId = ''] = volume.split('/')
      if (phase !== 'stale') continue
      await this.#passUntil(manager.mount({ plugin: 'disk', namespace, volumeId, allocId, access }))
    }

    const held = new Map(claims().map((claim) => [claim.key, claim]))
    for (const [key, is] of this.#model) if (is === 'open') this.#model.set(key, held.has(key) ? 'yes' : 'no')
    const wanted = [...this.#model].filter(([, is]) => is === 'yes').map(([key]) => key)
    expect([...held.keys()].sort(), 'held').to.deep.equal(wanted.sort())
    expect(
      [...held.values()].map(({ phase }) => phase),
      'phases',
    ).to.deep.equal(wanted.map(() => 'mounted'))
    const paths = [...held.values()].map(({ path }) => path)
    expect([...this.#plugin.published.keys()].sort(), 'published').to.deep.equal(paths.sort())
    const inUse = [...new Set([...held.values()].map(({ volume }) => volume))]
    const ids = inUse.map((volume) => volume.split('/')[1])
    expect([...this.#plugin.staged.values()].sort(), 'staged').to.deep.equal([...ids].sort())
    expect([...this.#plugin.attached.keys()].sort(), 'attached').to.deep.equal([...new Set(ids)].sort())
    expect(records.size, 'records').to.equal(inUse.length)
    expect([...this.#plugin.pathStates], 'dead').to.deep.equal([])
    expect(this.#plugin.offences, 'offences').to.deep.equal([])
  }

  async #until(isSo: () => boolean, what: () => string): Promise<void> {
    for (let turns = 0; !isSo(); turns++) {
      if (turns > manyTurns) throw new Error(`it never settles: ${what()}`)
      await pass()
    }
  }

  /** Lets time pass until something has ended. */
  async #passUntil<T>(work: Promise<T> | undefined): Promise<T | undefined> {
    let isOver = false
    const done = work?.finally(() => (isOver = true))
    done?.catch(() => undefined)
    if (work)
      await this.#until(
        () => isOver,
        () => 'it does not end',
      )
    return done
  }
}

/** The paths of what is held on record. */
function recorded(records: ReadonlyMap<string, string>): string {
  const all = [...records.values()].flatMap((text) => (JSON.parse(text) as { claims: Claim[] }).claims)
  return JSON.stringify(all.map(({ path, held }) => (held ? path : `${path} (let go of)`)).sort())
}

async function pass(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  mock.timers.tick(turnMs)
}

async function ask({ manager }: FakeHost, one: Wish): Promise<Answer> {
  const { kind, givesUpAfter, by } = one
  const caller = new AbortController()
  const isTimed = givesUpAfter !== undefined && by === 'time'
  if (givesUpAfter !== undefined && by === 'signal') setTimeout(() => caller.abort(), givesUpAfter * turnMs)
  try {
    await manager[kind](request(one), { signal: caller.signal, ...(isTimed && { timeoutMs: givesUpAfter * turnMs }) })
    return 'done'
  } catch (failure) {
    return answerOf(failure)
  }
}

function answerOf(failure: unknown): Answer {
  if (!(failure instanceof PlugstreamError)) throw failure
  const { code, message } = failure
  if (message.endsWith('(waiting for its turn)')) return 'never begun'
  if (code === 'ERR_STORE_WRITE') return 'not saved'
  return code === 'ERR_CSI_RPC' || code === 'ERR_MOUNT' ? 'failed' : 'given up'
}
