import { deepEqual, equal, fail, ok, rejects } from 'node:assert/strict'
import type { StateStore, StoreRecord, StoreWrite } from '../../lib/store/state-store.js'
import type { SuiteRunner } from './runner.js'

/** How the suite gets at the stores it tests. What is left out leaves out its rows. */
export interface StateStoreHarness {
  /** A fresh, empty store. */
  make(): Promise<StateStore>
  /** Another store over what this one, closed by now, has kept. */
  reopen?(store: StateStore): Promise<StateStore>
  /** Puts something that cannot be decoded at `key`, past the store. */
  corrupt?(store: StateStore, key: string): Promise<void>
  /** Makes every write fail until the function given back is called. */
  failWrites?(store: StateStore): Promise<() => Promise<void>>
  /** Removes what `make` made, after each test; the store was closed. */
  dispose?(store: StateStore): Promise<void>
}

/**
 * What every store must do, as tests of any runner.
 *
 * @example
 * import { describe, it } from 'mocha'
 * stateStoreSuite({ describe, it }, 'my store', { make: async () => myStore() })
 */
export function stateStoreSuite(runner: SuiteRunner, name: string, harness: StateStoreHarness): void {
  const { reopen, corrupt, failWrites } = harness

  const row = (title: string, body: (store: StateStore) => Promise<void>): void => {
    runner.it(title, async () => {
      const store = await harness.make()
      try {
        await body(store)
      } finally {
        await store.close()
        await harness.dispose?.(store)
      }
    })
  }

  runner.describe(`state store: ${name}`, () => {
    row('closes unused', (store) => store.close())

    row('closes twice, and joins a close in flight', async (store) => {
      await Promise.all([store.close(), store.close()])
      await store.close()
    })

    row('carries out what was asked before it was closed, and rejects what is asked after', async (store) => {
      const saved = store.save([put('a', 1)])
      const closed = store.close()
      await saved
      await closed
      await rejects(store.save([put('b', 2)]), { code: 'ERR_CLOSED' })
      await rejects(readAll(store), { code: 'ERR_CLOSED' })
    })

    row('reads nothing where nothing was saved', async (store) => {
      deepEqual(await readAll(store), {})
    })

    row('reads back every kind of plain value', async (store) => {
      await store.save(Object.entries(samples).map(([key, value]) => put(key, value)))
      deepEqual(await readAll(store), samples)
    })

    row('overwrites and deletes, also within one batch, where the last write of a key counts', async (store) => {
      await store.save([put('a', 1), put('b', 1), put('c', 1), put('d', 1)])
      await store.save([put('a', 2), remove('b'), put('c', 2), remove('c'), remove('d'), put('d', 2), put('d', 3)])
      deepEqual(await readAll(store), { a: 2, d: 3 })
    })

    row('takes an empty batch, and the deletion of what is not there', async (store) => {
      await store.save([])
      await store.save([remove('nobody')])
      deepEqual(await readAll(store), {})
    })

    row('shares no memory with what was saved', async (store) => {
      const value = { options: { a: 'b' }, list: [1] }
      const saved = store.save([put('a', value)])
      await saved
      value.options.a = 'changed'
      value.list.push(2)
      deepEqual(await readAll(store), { a: { options: { a: 'b' }, list: [1] } })
    })

    row('shares no memory with what was read', async (store) => {
      await store.save([put('a', { options: { a: 'b' } })])
      const found = (await readAll(store)) as { a: { options: { a: string } } }
      found.a.options.a = 'changed'
      deepEqual(await readAll(store), { a: { options: { a: 'b' } } })
    })

    row('keeps the last of concurrent saves', async (store) => {
      await Promise.all(Array.from({ length: 50 }, (_, at) => store.save([put('a', at), put(`b${at}`, at)])))
      const found = await readAll(store)
      equal(found.a, 49)
      equal(Object.keys(found).length, 51)
    })

    row('reads exactly the keys that begin with a prefix, whatever characters they are made of', async (store) => {
      await store.save(oddKeys.map((key) => put(key, key)))
      for (const prefix of ['', ...oddKeys]) {
        const wanted = oddKeys.filter((key) => key.startsWith(prefix)).sort()
        deepEqual(Object.keys(await readAll(store, prefix)).sort(), wanted, `prefix ${JSON.stringify(prefix)}`)
      }
      for (const key of oddKeys) await store.save([remove(key)])
      deepEqual(await readAll(store), {})
    })

    row('refuses keys that an engine would take for others', async (store) => {
      for (const key of ['', 'half \ud800 a pair', 'half \udc00 a pair']) {
        await rejects(store.save([put(key, 1)]), { code: 'ERR_OPTION_INVALID' }, JSON.stringify(key))
      }
      deepEqual(await readAll(store), {})
    })

    row('refuses a value that is no plain data, and goes on', async (store) => {
      await rejects(store.save([put('a', { amount: 1n })]), { code: 'ERR_STORE_WRITE' })
      await store.save([put('b', 1)])
      deepEqual(await readAll(store), { b: 1 })
    })

    row('holds ten thousand records', async (store) => {
      const keys = Array.from({ length: 10_000 }, (_, at) => `plugin/${at}`)
      await store.save(keys.map((key, at) => put(key, { at })))
      await store.save([put('other', 1)])
      const found = await readAll(store, 'plugin/')
      equal(Object.keys(found).length, 10_000)
      deepEqual(found['plugin/9999'], { at: 9_999 })
      await store.save(keys.slice(1).map(remove))
      deepEqual(Object.keys(await readAll(store)).sort(), ['other', 'plugin/0'])
    })

    if (reopen) {
      row('keeps everything when it is opened again', async (store) => {
        await store.save([put('gone', 1), put('changed', 1), ...Object.entries(samples).map(([k, v]) => put(k, v))])
        await store.save([remove('gone'), put('changed', 2)])
        await store.close()
        const again = await reopen(store)
        try {
          deepEqual(await readAll(again), { ...samples, changed: 2 })
          await again.save([put('changed', 3)])
          deepEqual(await readAll(again, 'changed'), { changed: 3 })
        } finally {
          await again.close()
        }
      })
    }

    if (corrupt) {
      row('tells of a broken record by its key, with what it holds, and reads the others', async (store) => {
        await store.save([put('a', 1), put('b', 2), put('c', 3)])
        await corrupt(store, 'b')
        const records = new Map<string, StoreRecord>()
        for await (const record of store.read('')) records.set(record.key, record)
        deepEqual([...records.keys()].sort(), ['a', 'b', 'c'])
        const broken = records.get('b') ?? fail()
        ok('error' in broken && broken.error !== undefined)
        ok(broken.raw !== undefined)
        await store.save([put('b', 4)])
        deepEqual(await readAll(store), { a: 1, b: 4, c: 3 })
      })
    }

    if (failWrites) {
      row('rejects what it cannot write, and goes on when it can', async (store) => {
        await store.save([put('a', 1), put('b', 1)])
        const heal = await failWrites(store)
        await rejects(store.save([put('a', 2)]), { code: 'ERR_STORE_WRITE' })
        await rejects(store.save([remove('b')]), { code: 'ERR_STORE_WRITE' })
        await rejects(store.save([put('a', 2), remove('b'), put('c', 2)]), { code: 'ERR_STORE_WRITE' })
        await heal()
        if (store.atomic) deepEqual(await readAll(store), { a: 1, b: 1 })
        await store.save([put('a', 3), put('b', 3), remove('c')])
        deepEqual(await readAll(store), { a: 3, b: 3 })
      })
    }
  })
}

const put = (key: string, value: unknown): StoreWrite => ({ kind: 'put', key, value })
const remove = (key: string): StoreWrite => ({ kind: 'delete', key })

async function readAll(store: StateStore, prefix = ''): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for await (const record of store.read(prefix)) {
    if ('error' in record) fail(`${record.key} cannot be read: ${String(record.error)}`)
    ok(!(record.key in found), `${record.key} is told twice`)
    found[record.key] = record.value
  }
  return found
}

/** What codecs are known to stumble over: colons, base64 marks, null, nesting, text of all planes and half a surrogate pair. */
const samples: Readonly<Record<string, unknown>> = {
  nothing: null,
  no: false,
  zero: 0,
  number: -1.5e300,
  empty: '',
  colon: ':a',
  base64: ':base64:AAAA',
  text: 'tab\t "quoted" ü 日本 🚀 \u0000 \ud800',
  list: [1, [2, []], { three: null }],
  nested: { a: { b: { c: [{ ':d': ':e' }] } }, value: 1, expires: 1 },
}

const oddKeys = [
  'plugin',
  'plugin/',
  'plugin/a',
  'plugin/%',
  'plugin/_',
  'plugin/a_b',
  'plugin/axb',
  'plugin/A_B',
  'Plugin/a',
  'plugin:a',
  'plugin/a:b',
  'plugin/a/b',
  'plugin/é',
  'plugin/e\u0301',
  'plugin/日本',
  'plugin/🚀',
  'plugin/🚀🚀',
  'plugin/\uffff',
  'plugin/\u{10ffff}',
  'plugin/a\u0000b',
  "plugin/'; DROP TABLE keyv; --",
  ' ',
  '%',
  '_',
]
