import { expect } from 'chai'
import fc from 'fast-check'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { FakePlugin, fakeHost, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { MortalHost } from './mortal.js'

/** What somebody asks for; perhaps to give up after some turns of the event loop. */
interface Wish {
  kind: 'mount' | 'unmount'
  volume: number
  alloc: number
  givesUpAfter: number | undefined
}

/** How a call goes wrong. */
interface Fault {
  rpc: string
  outcome: 'final' | 'unknown'
  isDone: boolean
}

/** Some wishes at the same time, with what goes wrong meanwhile. */
interface Burst {
  wishes: readonly Wish[]
  faults: readonly Fault[]
  /** The step at which the host is killed. */
  diesAt: number | undefined
  reboots: boolean
}

/** Whether a use is held. A host that dies, or a caller who gives up, leaves it open until it is looked at. */
type Held = 'yes' | 'no' | 'open'

const volumes = 20
const allocs = 5

const wish = fc.record({
  kind: fc.constantFrom('mount' as const, 'mount' as const, 'unmount' as const),
  // Small numbers come more often, so that many meet at one volume.
  volume: fc.oneof(fc.nat(2), fc.nat(volumes - 1)),
  alloc: fc.nat(allocs - 1),
  givesUpAfter: fc.option(fc.nat(8), { freq: 5, nil: undefined }),
})
const fault = fc.record({
  rpc: fc.constantFrom(
    'ControllerPublishVolume',
    'ControllerUnpublishVolume',
    'NodeStageVolume',
    'NodePublishVolume',
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
  ),
  outcome: fc.constantFrom('final' as const, 'unknown' as const),
  isDone: fc.boolean(),
})
const burst = fc.record({
  wishes: fc.array(wish, { minLength: 1, maxLength: 12 }),
  faults: fc.array(fault, { maxLength: 3 }),
  diesAt: fc.option(fc.integer({ min: 1, max: 60 }), { freq: 3, nil: undefined }),
  reboots: fc.boolean(),
})

const keyOf = ({ volume, alloc }: Pick<Wish, 'volume' | 'alloc'>): string => `v${volume} a${alloc}`
const request = ({ volume, alloc }: Wish): MountRequest => ({
  plugin: 'disk',
  volumeId: `v${volume}`,
  allocId: `a${alloc}`,
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** More turns than anything takes here: what is not so by then, never will be. */
const manyTurns = 5_000

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (let turns = 0; !isSo(); turns++) {
    if (turns > manyTurns) throw new Error(`${what}: never settles`)
    await turn()
  }
}

/** A host, its plugin, and what must be so. */
class World {
  readonly plugin = new FakePlugin()
  readonly records = new Map<string, string>()
  readonly model = new Map<string, Held>()

  async play({ wishes, faults, diesAt, reboots }: Burst): Promise<void> {
    for (const { rpc, outcome, isDone } of faults)
      this.plugin.fail(rpc, (_, effect) => {
        if (isDone) effect()
        throw rpcFailure('INTERNAL', outcome)
      })
    const mortal = new MortalHost(this.plugin, diesAt === undefined ? undefined : { at: diesAt, when: 'after' })
    const heard: (() => void)[] = []
    const died = await mortal.live(async (host, isOver) => {
      host.manager.pluginReady('disk')
      // What became of them is applied in the order they were asked for, which is the order they had their turns in.
      await Promise.all(wishes.map((one, at) => this.#ask(host, one, isOver).then((apply) => (heard[at] = apply))))
    }, this.records)
    wishes.forEach((one, at) => (heard[at] ?? (() => this.model.set(keyOf(one), 'open')))())
    if (died !== undefined && reboots) {
      this.plugin.bootId += '+'
      this.plugin.staged.clear()
      this.plugin.published.clear()
    }
    await this.#look(died ?? 'nobody died')
  }

  /** Resolves with what it changes in the model. */
  async #ask({ manager }: FakeHost, one: Wish, isOver: () => boolean): Promise<() => void> {
    const { model } = this
    const key = keyOf(one)
    const abort = new AbortController()
    if (one.givesUpAfter !== undefined) void giveUp(abort, one.givesUpAfter)
    const options = { signal: abort.signal }
    try {
      await (one.kind === 'mount' ? manager.mount(request(one), options) : manager.unmount(request(one), options))
      return () => void model.set(key, one.kind === 'mount' ? 'yes' : 'no')
    } catch {
      if (isOver()) return () => void model.set(key, 'open') // nobody was there to hear of it
      // A mount that fails leaves things as they were. An unmount that fails goes on, unless it never had its turn.
      if (one.kind === 'mount') return () => void model.set(key, model.get(key) ?? 'no')
      return () => void model.set(key, abort.signal.aborted && model.get(key) !== 'no' ? 'open' : 'no')
    }
  }

  /** A quiet point: everything well, and everything that was left over done. */
  async #look(when: string): Promise<void> {
    this.plugin.mishaps.clear()
    const host = await fakeHost(this.plugin, this.records)
    const { manager } = host
    manager.pluginReady('disk')
    await until(
      () => manager.list().every(({ claims }) => claims.length > 0 && claims.every(({ phase }) => phase === 'mounted')),
      `${when}, then ${JSON.stringify(manager.list())}`,
    )
    const held = new Map(
      manager
        .list()
        .flatMap(({ volumeId, claims }) => claims.map(({ allocId, path }) => [`${volumeId} ${allocId}`, path])),
    )
    for (const [key, is] of this.model) if (is === 'open') this.model.set(key, held.has(key) ? 'yes' : 'no')
    const wanted = [...this.model].filter(([, is]) => is === 'yes').map(([key]) => key)
    expect([...held.keys()].sort(), when).to.deep.equal(wanted.sort())
    expect([...this.plugin.published.keys()].sort(), when).to.deep.equal([...held.values()].sort())
    const inUse = [...new Set(wanted.map((key) => key.split(' ')[0]))].sort()
    expect([...this.plugin.staged.values()].sort(), when).to.deep.equal(inUse)
    expect([...this.plugin.attached.keys()].sort(), when).to.deep.equal(inUse)
    expect(this.records.size, when).to.equal(inUse.length)
    expect(this.plugin.offences, when).to.deep.equal([])
    await host.close()
  }
}

async function giveUp(abort: AbortController, turns: number): Promise<void> {
  for (let left = turns; left > 0; left--) await turn()
  abort.abort()
}

describe('volumes, whatever is asked of them and whatever goes wrong', () => {
  it('are mounted exactly where they are held at every quiet point', async function () {
    this.timeout(120_000)
    await fc.assert(
      fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 8 }), async (bursts) => {
        const world = new World()
        for (const one of bursts) await world.play(one)
      }),
      { numRuns: 300, seed: 20_261_201 },
    )
  })
})
