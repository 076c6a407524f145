import { createRequire } from 'node:module'
import { KeyvSqlite } from '@keyv/sqlite'
import { expect } from 'chai'
import { Keyv } from 'keyv'
import { PlugstreamError } from '../../../lib/errors.js'
import { openStore } from '../../../lib/store/open-store.js'
import { keyvStore } from '../../../lib/store/keyv-store.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import type { StateStore, StoreWrite } from '../../../lib/store/state-store.js'
import { scratchDir } from './scratch.js'

const put = (key: string, value: unknown): StoreWrite => ({ kind: 'put', key, value })
const remove = (key: string): StoreWrite => ({ kind: 'delete', key })

async function readAll(store: StateStore, prefix = ''): Promise<[string, unknown][]> {
  const found: [string, unknown][] = []
  for await (const record of store.read(prefix)) found.push([record.key, 'value' in record ? record.value : 'broken'])
  return found
}

async function codeOf(work: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof work === 'function' ? work() : work)
    return 'nothing thrown'
  } catch (thrown) {
    return thrown instanceof PlugstreamError ? thrown.code : String(thrown)
  }
}

/** An adapter such as one for a server over the network: it iterates with keys stripped of their prefix, some of them twice. */
class Scanning {
  readonly opts: { iterationLimit?: number } = {}
  namespace: string | undefined
  readonly entries = new Map<string, string>()
  on = (): this => this
  get = async (key: string): Promise<string | undefined> => this.entries.get(key)
  set = async (key: string, value: string): Promise<unknown> => this.entries.set(key, value)
  delete = async (key: string): Promise<boolean> => this.entries.delete(key)
  clear = async (): Promise<void> => {
    throw new Error('never to be cleared')
  }
  async *iterator(namespace?: string): AsyncGenerator<[string, string | undefined]> {
    for (const [key, value] of this.entries) {
      const plain = key.replace(`${namespace}:`, '')
      yield [plain, value]
      yield [plain, value]
    }
    yield ['vanished meanwhile', undefined]
  }
}

/** A Keyv knows an adapter that iterates by its dialect. */
const over = (adapter: Scanning): Keyv => new Keyv({ store: Object.assign(adapter, { opts: { dialect: 'redis' } }) })

describe('a store over a Keyv that was handed in', () => {
  const scratch = scratchDir()

  it('is refused where the adapter cannot iterate', async () => {
    const { get, set, delete: remove, clear } = new Scanning()
    for (const store of [{ get, set, delete: remove, clear }, undefined, null, 1]) {
      const keyv = { store, get, set, delete: remove, disconnect: clear }
      expect(await codeOf(() => keyvStore(keyv))).to.equal('ERR_OPTION_INVALID')
    }
  })

  it('takes a Keyv of either module kind, and a store stays what it is', async () => {
    const { Keyv: CommonJsKeyv } = createRequire(import.meta.url)('keyv') as { Keyv: typeof Keyv }
    expect(CommonJsKeyv).to.not.equal(Keyv)
    const store = openStore(new CommonJsKeyv())
    await store.save([put('a', 1)])
    expect(await readAll(store)).to.deep.equal([['a', 1]])
    const memory = memoryStore()
    expect(openStore(memory)).to.equal(memory)
  })

  it('refuses what is neither a Keyv nor a store', async () => {
    for (const nonsense of [undefined, null, 'redis://', 1, {}, new Map()]) {
      expect(await codeOf(() => openStore(nonsense as never))).to.equal('ERR_OPTION_INVALID')
    }
  })

  it('reads an adapter that strips its prefix and repeats keys as one of each', async () => {
    const adapter = new Scanning()
    const store = keyvStore(over(adapter))
    await store.save([put('a', 1), put('b', 2)])
    expect(await readAll(store)).to.deep.equal([
      ['a', 1],
      ['b', 2],
    ])
    expect(adapter.opts.iterationLimit).to.equal(1_000)
  })

  it('sees nothing of another Keyv on the same map', async () => {
    const map = new Map()
    const mine = keyvStore(new Keyv({ store: map, namespace: 'mine' }))
    const other = new Keyv({ store: map, namespace: 'mine2' })
    const bare = new Keyv({ store: map, namespace: 'bare', useKeyPrefix: false })
    await mine.save([put('a', 1)])
    await other.set('b', 2)
    await bare.set('c', 3)
    expect(await readAll(mine)).to.deep.equal([['a', 1]])
    expect(
      await readAll(keyvStore(new Keyv({ store: new Map([['a', '{"value":1}']]), useKeyPrefix: false }))),
    ).to.deep.equal([['a', 1]])
  })

  it('reads every row of a SQLite adapter, also where they are many', async () => {
    const adapter = new KeyvSqlite({ uri: `sqlite://${scratch.file('a.sqlite')}` })
    const keyv = new Keyv({ store: adapter })
    const rows = Array.from({ length: 5_000 }, (_, at) => `('keyv:plugin/${at}', '{"value":${at}}')`)
    await adapter.query(`INSERT INTO keyv VALUES ${rows.join(',')}, ('KEYV:plugin/x', '{"value":1}'), ('keyvX', '1')`)
    const store = keyvStore(keyv)
    expect(await readAll(store, 'plugin/')).to.have.length(5_000)
    await store.save([put('plugin/0', 'changed'), remove('plugin/1')])
    expect(await keyv.get('plugin/0')).to.equal('changed')
    expect(await readAll(store, 'plugin/')).to.have.length(4_999)
    await keyv.disconnect()
  })

  it('keeps records for ever, whatever time to live the Keyv has, and does not read what is over', async () => {
    const map = new Map<string, string>()
    const keyv = new Keyv({ store: map, ttl: 1 })
    const store = keyvStore(keyv)
    await store.save([put('a', 1)])
    expect(map.get('keyv:a')).to.equal('{"value":1}')
    map.set('keyv:b', '{"value":2,"expires":1}')
    expect(await readAll(store)).to.deep.equal([['a', 1]])
  })

  it('rejects a set that answers false', async () => {
    const adapter = new Scanning()
    const store = keyvStore(over(adapter))
    adapter.set = async () => false
    expect(await codeOf(store.save([put('a', 1)]))).to.equal('ERR_STORE_WRITE')
  })

  it('takes a delete that answers false for done only where the record is gone', async () => {
    const adapter = new Scanning()
    const store = keyvStore(over(adapter))
    await store.save([put('a', 1)])
    adapter.delete = async () => false
    expect(await codeOf(store.save([remove('a')]))).to.equal('ERR_STORE_WRITE')
    expect(await codeOf(store.save([remove('b')]))).to.equal('nothing thrown')
  })

  it('rejects a read that fails, and one that Keyv itself would answer with "not there"', async () => {
    const adapter = new Scanning()
    const keyv = over(adapter)
    const store = keyvStore(keyv)
    adapter.delete = async () => false
    adapter.get = () => Promise.reject(new Error('connection lost'))
    expect(await codeOf(store.save([remove('a')]))).to.equal('ERR_STORE_WRITE')
    adapter.iterator = async function* () {
      throw new Error('connection lost')
    }
    expect(await codeOf(readAll(store))).to.equal('ERR_STORE_READ')
  })

  it('waits for every write of a failed batch before it carries out the next', async () => {
    const adapter = new Scanning()
    const store = keyvStore(over(adapter))
    const slow = later()
    const { set } = adapter
    adapter.set = async (key, value) => {
      if (key.endsWith('bad')) throw new Error('refused')
      await slow.done
      return set(key, value)
    }
    const first = codeOf(store.save([put('bad', 1), put('a', 'old')]))
    const second = store.save([put('a', 'new')])
    slow.finish()
    expect(await first).to.equal('ERR_STORE_WRITE')
    await second
    expect(await readAll(store)).to.deep.equal([['a', 'new']])
  })

  it('reads a value by itself where the Keyv gives no way to decode one', async () => {
    const keyv = new Keyv()
    await keyv.set('a', 1)
    const map = keyv.store as Map<string, string>
    map.set('keyv:b', '{"half":')
    const bare = {
      store: map,
      namespace: 'keyv',
      get: (key: string) => keyv.get<unknown>(key),
      set: (key: string, value: unknown) => keyv.set(key, value),
      delete: (key: string) => keyv.delete(key),
      disconnect: () => keyv.disconnect(),
    }
    expect(await readAll(keyvStore(bare))).to.deep.equal([
      ['a', 1],
      ['b', 'broken'],
    ])
  })

  it('refuses a key that the Keyv would take for one with its prefix', async () => {
    expect(await codeOf(keyvStore(new Keyv()).save([put('keyv:a', 1)]))).to.equal('ERR_OPTION_INVALID')
  })

  it('leaves the Keyv connected when it is closed', async () => {
    const keyv = new Keyv()
    let disconnected = false
    keyv.on('disconnect', () => (disconnected = true))
    await keyvStore(keyv).close()
    expect(disconnected).to.equal(false)
  })
})

function later(): { done: Promise<void>; finish(): void } {
  let finish = (): void => undefined
  const done = new Promise<void>((resolve) => (finish = resolve))
  return { done, finish: () => finish() }
}
