import { expect } from 'chai'
import fc from 'fast-check'
import { concatMap, config, type Observable } from 'rxjs'
import type { PluginInfo, PluginRef, RegistryChange, RegistryEvent } from '../../lib/plugin/plugin.js'
import { Registry, type Registration } from '../../streams/registry.js'
import { fakeStore, type FakeStore } from '../fakes/fake-store.js'

/** Interleavings that are tried; the seed of a failing one is printed with it, and can be given as `SEED`. */
const runs = 10_000
const seed = process.env.SEED === undefined ? Date.now() : Number(process.env.SEED)

type Alloc = { alloc: string; name: string }
type Action =
  | ({ do: 'register'; by: 'register' | 'apply' | 'next'; version: string } & Alloc)
  | ({ do: 'deregister'; by: 'deregister' | 'apply' | 'next' } & Alloc)
  | ({ do: 'update'; by: 'apply' | 'next'; version: string } & Alloc)
  | { do: 'let go'; pick: number }
  | { do: 'subscribe'; how: 'watch' | 'throw' | 'slowly' | 'late' }
  | ({ do: 'react'; version: string } & Alloc)
  | { do: 'store'; manner: keyof typeof manners }
  | { do: 'wait'; long: boolean }
  | { do: 'close' }

/** How the store saves. Whatever it answers, a failure may have kept nothing, a part or all of the batch. */
const manners = {
  atOnce: (batch, keep) => {
    keep(batch)
    return []
  },
  soon: async (batch, keep) => keep(batch),
  later: (batch, keep) => turn().then(() => keep(batch)),
  never: () => new Promise(() => undefined),
  fails: () => Promise.reject(new Error('fails')),
  failsAtOnce: () => {
    throw new Error('fails at once')
  },
  failsWhole: async (batch, keep) => {
    if (batch.filter(({ key }) => key.startsWith('plugin/')).length > 1) throw new Error('fails whole')
    keep(batch)
  },
  failsForOne: async (batch, keep) => {
    if (batch.some(({ key }) => key.endsWith('/a'))) throw new Error('fails for one')
    keep(batch)
  },
  failsInPart: async (batch, keep) => {
    keep(batch.slice(batch.length / 2))
    throw new Error('fails in part')
  },
  failsAfterwards: (batch, keep) =>
    turn().then(() => {
      keep(batch)
      throw new Error('fails afterwards')
    }),
} satisfies Record<string, FakeStore['onSave']>

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const alloc = { alloc: fc.constantFrom('a', 'b', 'c'), name: fc.constantFrom('ebs', 'nfs') }
const version = fc.constantFrom('1', '2')
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('register' as const),
      by: fc.constantFrom('register' as const, 'apply' as const, 'next' as const),
      version,
      ...alloc,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('deregister' as const),
      by: fc.constantFrom('deregister' as const, 'apply' as const, 'next' as const),
      ...alloc,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('update' as const),
      by: fc.constantFrom('apply' as const, 'next' as const),
      version,
      ...alloc,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('let go' as const), pick: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('subscribe' as const),
      how: fc.constantFrom('watch' as const, 'throw' as const, 'slowly' as const, 'late' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('react' as const), version, ...alloc }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('store' as const),
      manner: fc.constantFrom(...(Object.keys(manners) as (keyof typeof manners)[])),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), long: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const) }) },
)

const refOf = ({ alloc, name }: Alloc): PluginRef => ({ type: 'csi-node', name, allocId: alloc })
const plain = ({ type, name, allocId }: PluginRef): PluginRef => ({ type, name, allocId })
const keyOf = ({ name, allocId }: PluginRef): string => `${name} ${allocId}`
const codeOf = (failure: unknown): unknown => (failure as { code?: unknown }).code

/** What was asked for, in the order it was. `id` names a registration; `holds` is the one that a deregistration is limited to. */
interface Asked {
  id: number
  kind: RegistryChange['kind']
  ref: PluginRef
  version?: string
  holds?: number
}

/** What came of it, in the order it came: events, and what was refused. */
type Came = { event: RegistryEvent } | { refused: unknown }

class Run {
  readonly store = fakeStore()
  readonly asked: Asked[] = []
  readonly came: Came[] = []
  readonly events: RegistryEvent[] = []
  readonly answers: Promise<void>[] = []
  readonly held: { id: number; registration: Registration }[] = []
  readonly subscribers: { seen: RegistryEvent[]; since: number; ended: Promise<void> }[] = []
  readonly watchers: { seen: RegistryEvent[] }[] = []
  closing: Promise<void> | undefined
  readonly registry: Registry

  constructor(registry: Registry, store: FakeStore) {
    this.registry = registry
    this.store = store
    registry.event$.subscribe((event) => {
      this.events.push(event)
      this.came.push({ event })
      this.#isTrue(event)
    })
    registry.problem$.subscribe((problem) => this.came.push({ refused: problem }))
  }

  async do(action: Action): Promise<void> {
    switch (action.do) {
      case 'register':
        this.register(action)
        return
      case 'deregister':
        this.deregister(action)
        return
      case 'update':
        this.update(action)
        return
      case 'let go':
        this.letGo(this.held[action.pick])
        return
      case 'subscribe':
        this.subscribe(action.how)
        return
      case 'react': {
        let reacted = false
        this.registry.event$.subscribe(() => {
          if (!reacted) this.register({ ...action, by: 'next' })
          reacted = true
        })
        return
      }
      case 'store':
        if (!this.closing) this.store.onSave = manners[action.manner]
        return
      case 'wait':
        return action.long ? turn() : Promise.resolve()
      case 'close':
        this.close()
    }
  }

  register({ by, version, ...alloc }: { by: string; version: string } & Alloc): void {
    const ref = refOf(alloc)
    const plugin = { ...ref, version, connection: { socketPath: '/run/a.sock' } }
    const id = this.#ask({ kind: 'register', ref, version })
    const change: RegistryChange = { kind: 'register', plugin }
    if (by === 'next') return this.registry.next(change)
    if (by === 'apply') return this.#answered(this.registry.apply(change).then((event) => this.#wasTold(event)))
    const registered = this.registry.register(plugin).then((registration) => {
      this.held.push({ id, registration })
      const told = this.events.some((event) => event.plugin === registration.plugin)
      expect(told, 'its event was told before it resolved').to.equal(true)
    })
    this.#answered(registered)
  }

  deregister({ by, ...alloc }: { by: string } & Alloc): void {
    const ref = refOf(alloc)
    this.#ask({ kind: 'deregister', ref })
    const change: RegistryChange = { kind: 'deregister', ref }
    if (by === 'next') return this.registry.next(change)
    if (by === 'apply') return this.#answered(this.registry.apply(change).then((event) => this.#wasTold(event)))
    this.#answered(this.registry.deregister(ref).then((was) => expect(was).to.be.a('boolean')))
  }

  update({ by, version, ...alloc }: { by: string; version: string } & Alloc): void {
    const ref = refOf(alloc)
    this.#ask({ kind: 'update', ref, version })
    const change: RegistryChange = { kind: 'update', ref, version, provider: '' }
    if (by === 'next') return this.registry.next(change)
    this.#answered(this.registry.apply(change).then((event) => this.#wasTold(event)))
  }

  letGo(one: { id: number; registration: Registration } | undefined): void {
    if (!one) return
    this.#ask({ kind: 'deregister', ref: plain(one.registration.plugin), holds: one.id })
    this.#answered(one.registration.deregister())
  }

  subscribe(how: 'watch' | 'throw' | 'slowly' | 'late'): void {
    const seen: RegistryEvent[] = []
    const since = this.events.length
    const follow = (event$: Observable<RegistryEvent>, next: (event: RegistryEvent) => void): Promise<void> =>
      new Promise((complete, error) => event$.subscribe({ next, complete, error }))
    const { event$, watch$ } = this.registry
    const note = (event: RegistryEvent): void => void seen.push(event)
    if (how === 'watch') {
      this.watchers.push({ seen })
      this.answers.push(follow(watch$, note))
    } else if (how === 'throw') {
      const ended = follow(event$, (event) => {
        note(event)
        throw new Error('thrown by a subscriber')
      })
      this.subscribers.push({ seen, since, ended })
    } else {
      const slow$ = event$.pipe(concatMap((event) => turn().then(() => event)))
      this.subscribers.push({ seen, since, ended: follow(how === 'slowly' ? slow$ : event$, note) })
    }
  }

  /** Closes the registry on a store that works again, or on one that hangs. */
  close(): void {
    if (this.store.onSave !== manners.never) this.store.onSave = manners.soon
    this.closing ??= this.registry.close()
  }

  async end(): Promise<void> {
    this.close()
    await this.closing
    await Promise.all([...this.answers, ...this.subscribers.map(({ ended }) => ended)])
  }

  #ask(asked: Omit<Asked, 'id'>): number {
    const id = this.asked.length
    if (!this.closing) this.asked.push({ id, ...asked })
    return id
  }

  #answered(work: Promise<unknown>): void {
    const late = this.closing !== undefined
    const answer = work.then(
      () => expect(late, 'answered after it was closed').to.equal(false),
      (failure: unknown) => {
        if (codeOf(failure) === undefined) throw failure
        expect(codeOf(failure)).to.be.oneOf(late ? ['ERR_CLOSED'] : ['ERR_CLOSED', 'ERR_STORE_WRITE'])
      },
    )
    this.answers.push(answer.then(() => undefined))
    answer.catch(() => undefined) // told by `end`
  }

  #wasTold(event: RegistryEvent | undefined): void {
    if (event) expect(this.events).to.include(event)
  }

  /** What an event says is what the registry says while it is told. */
  #isTrue({ kind, plugin, current }: RegistryEvent): void {
    const { registry } = this
    const instances = registry.instances(plugin.type, plugin.name)
    const ok =
      registry.get(plugin) === (kind === 'deregistered' ? undefined : plugin) &&
      instances[0] === current &&
      instances.includes(plugin) === (kind !== 'deregistered')
    if (!ok) this.answers.push(Promise.reject(new Error(`${kind} ${keyOf(plugin)} is not so`)))
  }
}

/** Every subscriber saw the same events in the same order from when it came, in growing numbers. */
function sawOneOrder({ events, subscribers, watchers, registry }: Run): void {
  events.reduce((last, { seq }) => {
    expect(seq).to.be.above(last)
    return seq
  }, 0)
  for (const { seen, since } of subscribers) {
    expect(seen.length).to.equal(events.length - since)
    seen.forEach((event, at) => expect(event).to.equal(events[since + at]))
  }
  for (const { seen } of watchers) expect(fold(seen)).to.deep.equal(present(registry))
  expect(fold(events)).to.deep.equal(present(registry))
}

/** Who is there after these events, oldest first. */
function fold(events: readonly RegistryEvent[]): PluginInfo[] {
  const there = new Map<string, PluginInfo>()
  for (const { kind, plugin } of events) {
    if (kind === 'deregistered') there.delete(keyOf(plugin))
    else there.set(keyOf(plugin), plugin)
  }
  return [...there.values()]
}

function present(registry: Registry): readonly PluginInfo[] {
  let all: readonly PluginInfo[] = []
  registry.plugins$.subscribe((plugins) => (all = plugins))
  return all
}

/** What came is what had to come of what was asked, one after the other, as if there were no queue. */
function cameInTurn({ asked, came }: Run): void {
  const there = new Map<string, { version: string; id: number }>()
  let next = 0
  for (const { id, kind, ref, version = '', holds } of asked) {
    const known = there.get(keyOf(ref))
    const isNothing = {
      register: known?.version === version,
      update: !known || known.version === version,
      deregister: !known || (holds ?? known.id) !== known.id,
    }[kind]
    if (isNothing) {
      if (kind === 'register') there.set(keyOf(ref), { version, id })
      continue
    }
    const one = came[next++]
    if (one === undefined || isClosed(one)) return // closed on a store that hangs
    const words = `${kind} ${keyOf(ref)}`
    if ('refused' in one) {
      expect(one.refused, words).to.deep.include({ code: 'ERR_STORE_WRITE' })
      expect(one.refused, words).to.have.property('details').that.deep.equals(ref)
      continue
    }
    const expected = kind === 'deregister' ? 'deregistered' : known ? 'updated' : 'registered'
    expect(`${one.event.kind} ${keyOf(one.event.plugin)}`, words).to.equal(`${expected} ${keyOf(ref)}`)
    if (kind === 'deregister') there.delete(keyOf(ref))
    else there.set(keyOf(ref), { version, id: kind === 'update' && known ? known.id : id })
  }
  // What would have changed nothing is refused, too, where it waits behind a store that hangs.
  expect(
    came.slice(next).filter((one) => !isClosed(one)),
    'nothing else came',
  ).to.deep.equal([])
}

const isClosed = (one: Came): boolean => 'refused' in one && codeOf(one.refused) === 'ERR_CLOSED'

async function isStored(run: Run): Promise<void> {
  const again = await Registry.open({ store: fakeStore(run.store.records) })
  const restored: RegistryEvent[] = []
  again.watch$.subscribe((event) => restored.push(event))
  expect(restored.map(({ plugin }) => plugin)).to.deep.equal(present(run.registry))
  for (const { seq } of restored) expect(seq).to.be.above(run.events.at(-1)?.seq ?? 0)
  await again.close()
}

describe('the registry under interleavings of all that can happen', () => {
  before(() => {
    config.onUnhandledError = () => undefined // what the subscribers throw
  })
  after(async () => {
    await new Promise((resolve) => setTimeout(resolve)) // RxJS reports in a turn of its own
    config.onUnhandledError = null
  })

  it(`keeps one order, and memory equal to the store and to what was told (seed ${seed})`, async () => {
    const property = fc.asyncProperty(fc.array(action, { maxLength: 20 }), async (actions) => {
      const store = fakeStore()
      const hangs = actions.some((one) => one.do === 'store' && one.manner === 'never')
      const closeTimeoutMs = hangs ? 1 : 60_000
      const run = new Run(await Registry.open({ store, closeTimeoutMs, now: () => 7 }), store)
      for (const one of actions) await run.do(one)
      await run.end()
      sawOneOrder(run)
      cameInTurn(run)
      if (!hangs) await isStored(run) // what a store that hangs has kept cannot be known
    })
    await fc.assert(property, { seed, numRuns: runs })
  }).timeout(60_000)
})
