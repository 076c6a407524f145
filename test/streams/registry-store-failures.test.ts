import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { Keyv } from 'keyv'
import { throwError } from 'rxjs'
import type { RegistryEvent } from '../../lib/plugin/plugin.js'
import { writeFailed } from '../../lib/store/store-error.js'
import { sqliteStore, type SqliteStore } from '../../lib/store/sqlite-store.js'
import { Registry } from '../../streams/registry.js'
import { fakeStore, gate, type FakeStore } from '../fakes/fake-store.js'
import { holdLock, scratchDir } from '../lib/store/scratch.js'
import { allocs, deregister, plugin, ref, refusal, register, short } from './registry-values.js'

const present = (registry: Registry): string[] => allocs(registry.instances('csi-node', 'ebs'))

/** What a registry that is opened anew finds. */
async function stored(records: Map<string, string>): Promise<string[]> {
  const registry = await Registry.open({ store: fakeStore(new Map(records)) })
  const found = present(registry)
  await registry.close()
  return found
}

describe('a registry whose store fails', () => {
  let store: FakeStore
  let registry: Registry
  let told: string[]
  let problems: string[]
  beforeEach(async () => {
    store = fakeStore()
    registry = await Registry.open({ store, closeTimeoutMs: 50 })
    told = []
    problems = []
    registry.event$.subscribe((event) => told.push(short(event)))
    registry.problem$.subscribe(({ code, message }) => problems.push(`${code} ${message}`))
    await registry.register(plugin('a'))
    told.length = 0
  })
  afterEach(() => registry.close())

  const keepsAll: FakeStore['onSave'] = async (batch, keep) => keep(batch)

  const failures: [what: string, onSave: FakeStore['onSave']][] = [
    ['rejects', () => Promise.reject(new Error('disk full'))],
    [
      'throws',
      () => {
        throw new Error('disk full')
      },
    ],
    ['throws something odd', () => throwError(() => undefined)],
    [
      'rejects after it has saved',
      async (batch, keep) => {
        keep(batch)
        throw new Error('connection lost')
      },
    ],
  ]
  for (const [what, onSave] of failures) {
    it(`refuses a change where the store ${what}, stays as it was, and goes on`, async () => {
      const before = [registry.get(ref('a')), registry.list()]
      store.onSave = onSave
      for (const work of [
        registry.register(plugin('b')),
        registry.register(plugin('a', { version: '2' })),
        registry.deregister(ref('a')),
        registry.apply(register('c')),
      ]) {
        const refused = await refusal(work)
        expect(refused).to.include({ code: 'ERR_STORE_WRITE', retryable: true })
        expect(refused.message).to.contain('of alloc')
      }
      expect([registry.get(ref('a')), registry.list()]).to.deep.equal(before)
      expect(told).to.deep.equal([])
      store.onSave = keepsAll
      expect((await registry.register(plugin('b'))).plugin.allocId).to.equal('b')
      expect(told).to.deep.equal(['registered b, current b'])
      await registry.close()
      expect(await stored(store.records)).to.deep.equal(['b', 'a'])
    })
  }

  it('tells of every change that was refused, who made it and why', async () => {
    store.onSave = () => Promise.reject(new Error('disk full'))
    registry.next(register('b'))
    registry.next(deregister('a'))
    await refusal(registry.register(plugin('c')))
    expect(problems).to.have.length(3)
    expect(problems[0]).to.match(/^ERR_STORE_WRITE csi-node ebs of alloc b was not registered.*disk full/)
    expect(problems[1]).to.match(/^ERR_STORE_WRITE csi-node ebs of alloc a was not deregistered.*disk full/)
  })

  it('keeps a registration whose deregistration was refused, and can deregister it later', async () => {
    const registration = await registry.register(plugin('b'))
    store.onSave = () => Promise.reject(new Error('disk full'))
    expect((await refusal(registration.deregister())).code).to.equal('ERR_STORE_WRITE')
    store.onSave = keepsAll
    await registration.deregister()
    expect(present(registry)).to.deep.equal(['a'])
  })

  it('saves one by one what could not be saved together, each on its own and in its order', async () => {
    const first = gate()
    store.onSave = (batch, keep) => first.opened.then(() => keep(batch))
    const settled: string[] = []
    const watch = (name: string, work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => settled.push(`${name} saved`),
        () => settled.push(`${name} refused`),
      )
    const all = [watch('first', registry.register(plugin('first')))]
    for (const name of ['b', 'bad', 'c']) all.push(watch(name, registry.register(plugin(name))))
    all.push(watch('bad again', registry.deregister(ref('bad'))))
    store.onSave = async (batch, keep) => {
      if (batch.some(({ key }) => key.endsWith('bad'))) throw new Error('poison')
      keep(batch)
    }
    first.open()
    await Promise.all(all)
    expect(settled).to.deep.equal(['first saved', 'b saved', 'bad refused', 'c saved', 'bad again saved'])
    expect(told).to.deep.equal([
      'registered first, current first',
      'registered b, current b',
      'registered c, current c',
    ])
    expect(problems).to.have.length(1)
  })

  it('registers anew what was registered just so only in a batch that failed', async () => {
    const first = gate()
    store.onSave = (batch, keep) => first.opened.then(() => keep(batch))
    const all = [registry.register(plugin('first'))]
    const refused = refusal(registry.register(plugin('b')))
    all.push(registry.register(plugin('b')))
    let attempts = 0
    store.onSave = async (batch, keep) => {
      if (attempts++ < 2) throw new Error('disk full')
      keep(batch)
    }
    first.open()
    await Promise.all(all)
    expect((await refused).code).to.equal('ERR_STORE_WRITE')
    expect(told).to.deep.equal(['registered first, current first', 'registered b, current b'])
  })

  it('does not try one by one what waits for a store that somebody else holds as a whole', async () => {
    const first = gate()
    store.onSave = (batch, keep) => first.opened.then(() => keep(batch))
    const begun = registry.register(plugin('first'))
    const waiting = Array.from({ length: 50 }, (_, at) => refusal(registry.register(plugin(`b${at}`))))
    store.saves.length = 0
    const busy = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
    store.onSave = () => Promise.reject(writeFailed('writing', busy))
    first.open()
    await begun
    for (const refused of await Promise.all(waiting)) expect(refused.code).to.equal('ERR_STORE_WRITE')
    expect(store.saves).to.have.length(2)
  })

  describe('and saves a part of it', () => {
    /** Fails after every write of the batch but the last was kept; a batch of one is kept as well. */
    const saysNo: FakeStore['onSave'] = async (batch, keep) => {
      keep(batch.length > 1 ? batch.slice(0, -1) : batch)
      throw new Error('connection lost')
    }

    it('makes good what is in doubt, after the next save that succeeds', async () => {
      store.onSave = saysNo
      await Promise.all([
        refusal(registry.register(plugin('b'))),
        refusal(registry.deregister(ref('a'))),
        refusal(registry.register(plugin('a', { version: '2' }))),
      ])
      expect(await stored(store.records), 'for now').to.not.deep.equal(['a'])
      store.onSave = keepsAll
      await registry.register(plugin('c'))
      await registry.close()
      expect(await stored(store.records)).to.deep.equal(['c', 'a'])
    })

    it('makes good what is in doubt at the latest when it is closed', async () => {
      store.onSave = saysNo
      await refusal(registry.register(plugin('b')))
      expect(await stored(store.records)).to.deep.equal(['b', 'a'])
      store.onSave = keepsAll
      await registry.close()
      expect(await stored(store.records)).to.deep.equal(['a'])
    })

    it('does not let one record that cannot be made good stand in the way of others, nor of closing', async () => {
      store.onSave = saysNo
      await refusal(registry.register(plugin('b')))
      await refusal(registry.register(plugin('bad')))
      store.onSave = async (batch, keep) => {
        if (batch.some(({ key }) => key.endsWith('bad'))) throw new Error('poison')
        keep(batch)
      }
      await registry.register(plugin('c'))
      await registry.register(plugin('d'))
      await registry.close()
      expect(await stored(store.records)).to.deep.equal(['d', 'c', 'bad', 'a'])
    })
  })
})

describe('a registry on a SQLite file', () => {
  const scratch = scratchDir()
  let store: SqliteStore
  let registry: Registry
  let told: RegistryEvent[]
  const opened: (() => Promise<void>)[] = []

  async function open(file: string): Promise<void> {
    store = await sqliteStore({ file, busyTimeoutMs: 20 })
    registry = await Registry.open({ store })
    told = []
    registry.event$.subscribe((event) => told.push(event))
    opened.push(store.close, () => registry.close())
    await registry.register(plugin('a'))
  }
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close()
  })

  async function isRefused(work: Promise<unknown>): Promise<void> {
    const events = told.length
    const before = present(registry)
    expect((await refusal(work)).code).to.equal('ERR_STORE_WRITE')
    expect([told.length, present(registry)]).to.deep.equal([events, before])
  }

  it('that another process holds refuses changes until it is free', async () => {
    await open(scratch.file('a.sqlite'))
    const holder = await holdLock(scratch.file('a.sqlite'))
    await isRefused(registry.register(plugin('b')))
    await isRefused(registry.deregister(ref('a')))
    await Promise.all(['c', 'd', 'e'].map((alloc) => isRefused(registry.register(plugin(alloc)))))
    await holder.kill()
    await registry.register(plugin('b'))
    expect(present(registry)).to.deep.equal(['b', 'a'])
  })

  it('that became read-only refuses changes until it is not', async () => {
    await open(scratch.file('a.sqlite'))
    const { query } = store.keyv.store as { query(sql: string): Promise<unknown> }
    await query('PRAGMA query_only=1')
    await isRefused(registry.register(plugin('b')))
    await isRefused(registry.deregister(ref('a')))
    await query('PRAGMA query_only=0')
    await registry.register(plugin('b'))
    expect(present(registry)).to.deep.equal(['b', 'a'])
  })

  it('on a full disk refuses changes until there is room', async function () {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) {
      const reason = 'only root on Linux can mount a small file system'
      if (process.env.CI) throw new Error(reason)
      process.stdout.write(`      not run: ${reason}\n`)
      this.skip()
    }
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', scratch.path])
    try {
      await open(scratch.file('a.sqlite'))
      let saved = 0
      try {
        writeFileSync(scratch.file('ballast'), Buffer.alloc(1_048_576))
      } catch (failure) {
        expect(failure).to.have.property('code', 'ENOSPC')
      }
      // SQLite may have some pages in hand still; a few records use them up.
      const big = 'x'.repeat(4_096)
      for (let at = 0; at < 100; at++) {
        const failure = await registry
          .register(plugin(`b${at}`, { options: { big } }))
          .catch((thrown: unknown) => thrown)
        if (failure instanceof Error) break
        saved++
      }
      expect(saved).to.be.below(100)
      await isRefused(registry.register(plugin('c', { options: { big } })))
      const both = ['d', 'e'].map((alloc) => isRefused(registry.register(plugin(alloc, { options: { big } }))))
      await Promise.all(both)
      rmSync(scratch.file('ballast'))
      await registry.register(plugin('c'))
      expect(present(registry)[0]).to.equal('c')
      const expected = present(registry)
      await registry.close()
      const again = await Registry.open({ store })
      expect(present(again)).to.deep.equal(expected)
      await again.close()
      await store.close()
    } finally {
      execFileSync('umount', ['-l', scratch.path])
    }
  })
})

describe('a registry on a Keyv that was handed in', () => {
  it('refuses a change where `set` answers false, and where `delete` does and the record is still there', async () => {
    const map = new Map<string, string>()
    const keyv = new Keyv({ store: map })
    const registry = await Registry.open({ store: keyv })
    await registry.register(plugin('a'))
    const { set, delete: remove } = keyv
    keyv.set = async () => false
    expect((await refusal(registry.register(plugin('b')))).code).to.equal('ERR_STORE_WRITE')
    keyv.set = set
    keyv.delete = async () => false
    expect((await refusal(registry.deregister(ref('a')))).code).to.equal('ERR_STORE_WRITE')
    expect(present(registry)).to.deep.equal(['a'])
    keyv.delete = remove
    await registry.deregister(ref('a'))
    await registry.register(plugin('b'))
    await registry.close()
    expect([...map.keys()].sort()).to.deep.equal(['keyv:plugin/csi-node/ebs/b', 'keyv:registry/sequence'])
  })
})
