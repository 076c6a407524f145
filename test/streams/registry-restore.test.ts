import { expect } from 'chai'
import { KeyvSqlite } from '@keyv/sqlite'
import { Keyv } from 'keyv'
import { seqBlock } from '../../lib/defaults.js'
import type { PlugstreamError } from '../../lib/errors.js'
import type { RegistryEvent } from '../../lib/plugin/plugin.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import { sqliteStore } from '../../lib/store/sqlite-store.js'
import { Registry } from '../../streams/registry.js'
import { fakeStore, type FakeStore } from '../fakes/fake-store.js'
import { scratchDir } from '../lib/store/scratch.js'
import { allocs, plugin, ref, refusal, short } from './registry-values.js'

const key = (alloc: string): string => `plugin/csi-node/ebs/${alloc}`

/** What a new subscriber is shown. */
function shown(registry: Registry): RegistryEvent[] {
  const events: RegistryEvent[] = []
  registry.watch$.subscribe((event) => events.push(event)).unsubscribe()
  return events
}

function problems(registry: Registry): PlugstreamError[] {
  const found: PlugstreamError[] = []
  registry.problem$.subscribe((problem) => found.push(problem)).unsubscribe()
  return found
}

/** Registers in one run of a host, and ends it. */
async function earlier(store: FakeStore, work: (registry: Registry) => Promise<unknown>): Promise<RegistryEvent[]> {
  const registry = await Registry.open({ store })
  const told: RegistryEvent[] = []
  registry.event$.subscribe((event) => told.push(event))
  await work(registry)
  await registry.close()
  return told
}

describe('the registry, opened on what an earlier run has saved', () => {
  const scratch = scratchDir()

  it('knows every instance as it was, and in its order', async () => {
    const store = fakeStore()
    const whole = plugin('b', { version: '1', provider: 'p', options: { taskName: ':t', 'ü/%': '' } })
    let before: unknown
    await earlier(store, async (registry) => {
      for (const one of [plugin('c'), whole, plugin('a'), plugin('d')]) await registry.register(one)
      await registry.register(plugin('c', { version: '2' }))
      await registry.deregister(ref('d'))
      before = [registry.instances('csi-node', 'ebs'), registry.list()]
    })
    const registry = await Registry.open({ store })
    expect([registry.instances('csi-node', 'ebs'), registry.list()]).to.deep.equal(before)
    expect(allocs(registry.instances('csi-node', 'ebs'))).to.deep.equal(['a', 'b', 'c'])
    expect(Object.isFrozen(registry.get(ref('b')))).to.equal(true)
    const { plugin: next } = await registry.register(plugin('e'))
    expect(registry.list()).to.deep.equal([next])
    await registry.close()
  })

  it('shows what it restored as restored, oldest first, with numbers above all that were told before', async () => {
    const store = fakeStore()
    const told = await earlier(store, async (registry) => {
      for (const alloc of ['b', 'a']) await registry.register(plugin(alloc))
    })
    const registry = await Registry.open({ store, now: () => 77 })
    const events = shown(registry)
    expect(events.map(short)).to.deep.equal(['registered b, current a', 'registered a, current a'])
    expect(events.map(({ restored, at }) => [restored, at])).to.deep.equal([
      [true, 77],
      [true, 77],
    ])
    const live: RegistryEvent[] = []
    registry.event$.subscribe((event) => live.push(event))
    await registry.register(plugin('a'))
    expect(
      shown(registry).map(({ restored }) => restored),
      'registered just so again',
    ).to.deep.equal([true, false])
    await registry.deregister(ref('b'))
    const numbers = [...told, ...events, ...live].map(({ seq }) => seq)
    expect(numbers).to.deep.equal([...new Set(numbers)].sort((a, b) => a - b))
    expect(live.map(({ restored }) => restored)).to.deep.equal([false])
    await registry.close()
  })

  it('goes on with its numbers also after a run that was cut off, and reserves them in blocks', async () => {
    const store = fakeStore()
    let last = 0
    for (let run = 0; run < 3; run++) {
      // Never closed: what counts is what is saved at any moment.
      const registry = await Registry.open({ store: fakeStore(new Map(store.records)) })
      registry.event$.subscribe(({ seq }) => {
        expect(seq).to.be.above(last)
        last = seq
      })
      const saved = await Registry.open({ store })
      saved.event$.subscribe(({ seq }) => (last = Math.max(last, seq)))
      await saved.register(plugin(`a${run}`))
      await saved.close()
      await registry.close()
    }
    const many = await Registry.open({ store })
    const reserved = new Set<string>()
    for (let at = 0; at < seqBlock / 2; at++) {
      await (await many.register(plugin('x'))).deregister()
      reserved.add(store.records.get('registry/sequence') ?? '')
    }
    expect(reserved.size).to.be.within(1, 2)
    await many.close()
  })

  it('reads a record that a plain Keyv wrote, and writes one that it reads', async () => {
    const file = scratch.file('a.sqlite')
    const store = await sqliteStore({ file })
    const first = await Registry.open({ store })
    await Promise.all(['a', 'b'].map((alloc) => first.register(plugin(alloc))))
    await first.close()
    await store.close()

    const keyv = new Keyv({ store: new KeyvSqlite({ uri: `sqlite://${file}` }) })
    const record = await keyv.get<{ order: number; plugin: object }>(key('a'))
    expect(record).to.deep.include({ schema: 1, order: 1 })
    expect(record?.plugin).to.deep.include(plugin('a'))
    await keyv.set(key('a'), { ...record, plugin: { ...record?.plugin, version: 'by hand' } })
    const onKeyv = await Registry.open({ store: keyv })
    expect(onKeyv.get(ref('a'))?.version).to.equal('by hand')
    await onKeyv.register(plugin('c'))
    await onKeyv.deregister(ref('b'))
    await onKeyv.close()
    await keyv.disconnect()

    const again = await sqliteStore({ file })
    const last = await Registry.open({ store: again })
    expect(allocs(last.instances('csi-node', 'ebs'))).to.deep.equal(['c', 'a'])
    expect(problems(last)).to.deep.equal([])
    await last.close()
    await again.close()
  })

  describe('of which some cannot be read', () => {
    const newer = { schema: 2, order: 'whatever', plugin: 'of a later time' }

    /** A store with two good records, one cut in half and one of a newer version. */
    async function damaged(): Promise<FakeStore> {
      const store = fakeStore()
      await earlier(store, async (registry) => {
        for (const alloc of ['good1', 'half', 'newer', 'good2']) await registry.register(plugin(alloc))
      })
      store.records.set(key('half'), '{"schema":1,"ord')
      store.records.set(key('newer'), JSON.stringify(newer))
      return store
    }

    it('tells of each by its key to every subscriber, leaves it where it is, and loads the rest', async () => {
      const store = await damaged()
      const before = new Map(store.records)
      const registry = await Registry.open({ store })
      expect(allocs(registry.instances('csi-node', 'ebs'))).to.deep.equal(['good2', 'good1'])
      for (let subscriber = 0; subscriber < 2; subscriber++) {
        const told = problems(registry).map(({ code, details }) => `${code} ${String(details.key)}`)
        expect(told).to.have.members([`ERR_STORE_CORRUPT ${key('half')}`, `ERR_STORE_READ ${key('newer')}`])
      }
      expect(await registry.deregister(ref('half'))).to.equal(false)
      await registry.register(plugin('other'))
      await registry.close()
      for (const alloc of ['half', 'newer']) expect(store.records.get(key(alloc))).to.equal(before.get(key(alloc)))
    })

    it('copies one before it is registered over', async () => {
      const store = await damaged()
      const registry = await Registry.open({ store })
      store.saves.length = 0
      await Promise.all([registry.register(plugin('half')), registry.register(plugin('newer'))])
      await registry.register(plugin('half', { version: '2' }))
      const keys = store.saves.flatMap((batch, at) => batch.map((write) => [write.key, at] as const))
      for (const alloc of ['half', 'newer']) {
        const saved = (wanted: string): number[] => keys.flatMap(([one, at]) => (one === wanted ? [at] : []))
        const [copied, ...again] = saved(`quarantine/${key(alloc)}`)
        expect(again).to.deep.equal([])
        expect(copied).to.be.below(saved(key(alloc))[0] ?? 0)
      }
      expect(JSON.parse(store.records.get(`quarantine/${key('half')}`) ?? '')).to.equal('{"schema":1,"ord')
      expect(JSON.parse(store.records.get(`quarantine/${key('newer')}`) ?? '')).to.deep.equal(newer)
      expect(problems(registry)).to.deep.equal([])
      await registry.close()
      const again = await Registry.open({ store })
      expect(allocs(again.instances('csi-node', 'ebs'))).to.deep.equal(['newer', 'half', 'good2', 'good1'])
      await again.close()
    })

    it('does not register over one that cannot be copied', async () => {
      const store = await damaged()
      const half = store.records.get(key('half'))
      const registry = await Registry.open({ store })
      store.onSave = async (batch, keep) => {
        if (batch.some((write) => write.key.startsWith('quarantine/'))) throw new Error('full')
        keep(batch)
      }
      const refused = refusal(registry.register(plugin('half')))
      await registry.register(plugin('other'))
      expect((await refused).code).to.equal('ERR_STORE_WRITE')
      expect(store.records.get(key('half'))).to.equal(half)
      await registry.close()
      expect(store.records.get(key('half')), 'after the close, too').to.equal(half)
    })

    it('goes on with its numbers above all that were used where their record is one of them', async () => {
      const store = fakeStore()
      const told = await earlier(store, (registry) => registry.register(plugin('a')))
      store.records.set('registry/sequence', '{"half')
      const registry = await Registry.open({ store })
      expect(problems(registry).map(({ details }) => details.key)).to.deep.equal(['registry/sequence'])
      expect(shown(registry)[0]?.seq).to.be.above(told[0]?.seq ?? Infinity)
      expect(JSON.parse(store.records.get('quarantine/registry/sequence') ?? '')).to.equal('{"half')
      await registry.close()
      const again = await Registry.open({ store })
      expect(problems(again)).to.deep.equal([])
      await again.close()
    })
  })

  it('is not opened where the store cannot be read, or can tell only a part', async () => {
    const store = fakeStore()
    await earlier(store, (registry) => registry.register(plugin('a')))
    store.onRead = async function* (prefix, read) {
      yield* read(prefix)
      throw new Error('connection lost')
    }
    expect(await Registry.open({ store }).catch((failure: unknown) => (failure as Error).message)).to.equal(
      'connection lost',
    )
    const closed = memoryStore()
    await closed.close()
    expect((await refusal(Registry.open({ store: closed }))).code).to.equal('ERR_CLOSED')
    expect((await refusal(Registry.open({ store: {} as never }))).code).to.equal('ERR_OPTION_INVALID')
  })

  it('is opened where the store can be read but not written, and says so', async () => {
    const store = fakeStore()
    await earlier(store, (registry) => registry.register(plugin('a')))
    store.onSave = () => Promise.reject(new Error('read-only'))
    const registry = await Registry.open({ store })
    expect(allocs(registry.list())).to.deep.equal(['a'])
    expect(problems(registry).map(({ code }) => code)).to.deep.equal(['ERR_STORE_WRITE'])
    expect((await refusal(registry.register(plugin('b')))).code).to.equal('ERR_STORE_WRITE')
    store.onSave = async (batch, keep) => keep(batch)
    await registry.register(plugin('b'))
    expect(store.saves.at(-1)?.map((write) => write.key)).to.include('registry/sequence')
    await registry.close()
  })
})
