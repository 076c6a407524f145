import { mkdirSync, writeFileSync } from 'node:fs'
import { KeyvSqlite } from '@keyv/sqlite'
import { expect } from 'chai'
import { Keyv } from 'keyv'
import { PlugstreamError } from '../../../lib/errors.js'
import { sqliteStore, type SqliteStore } from '../../../lib/store/sqlite-store.js'
import type { StateStore, StoreWrite } from '../../../lib/store/state-store.js'
import { holdLock, scratchDir } from './scratch.js'

const put = (key: string, value: unknown): StoreWrite => ({ kind: 'put', key, value })
const remove = (key: string): StoreWrite => ({ kind: 'delete', key })

const query = async (store: SqliteStore, sql: string): Promise<unknown> => (store.keyv.store as KeyvSqlite).query(sql)

const plainKeyv = (file: string): Keyv => new Keyv({ store: new KeyvSqlite({ uri: `sqlite://${file}` }) })

async function readAll(store: StateStore): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for await (const record of store.read('')) found[record.key] = 'value' in record ? record.value : record.error
  return found
}

async function refusal(work: Promise<unknown>): Promise<PlugstreamError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  expect(thrown).to.be.instanceOf(PlugstreamError)
  return thrown as PlugstreamError
}

describe('the SQLite store', () => {
  const scratch = scratchDir()

  it('keeps a write-ahead log and flushes it with every save, each time it is opened', async () => {
    for (let opening = 0; opening < 2; opening++) {
      const store = await sqliteStore({ file: scratch.file('a.sqlite') })
      await store.save([put('a', opening)])
      expect(await query(store, 'PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
      expect(await query(store, 'PRAGMA synchronous')).to.deep.equal([{ synchronous: 2 }])
      await store.close()
    }
  })

  it('writes what a plain Keyv on the same file reads, and reads what that one wrote', async () => {
    const file = scratch.file('a.sqlite')
    const values = { one: ':colon', two: { ':base64:': ':base64:AAAA', n: null }, 'three/%_': [1, 'ü🚀'], gone: 1 }
    const store = await sqliteStore({ file })
    await store.save(Object.entries(values).map(([key, value]) => put(key, value)))
    await store.save([remove('gone'), put('both', 1)])
    const keyv = plainKeyv(file)
    for (const [key, value] of Object.entries(values)) {
      expect(await keyv.get(key), key).to.deep.equal(key === 'gone' ? undefined : value)
    }
    await keyv.set('four', { deep: [':x'] })
    await keyv.delete('both')
    expect(await readAll(store)).to.deep.equal({
      one: values.one,
      two: values.two,
      'three/%_': values['three/%_'],
      four: { deep: [':x'] },
    })
    await keyv.disconnect()
    await store.close()
  })

  it('saves a batch whole or not at all, and leaves no transaction behind', async () => {
    const store = await sqliteStore({ file: scratch.file('a.sqlite') })
    await store.save([put('a', 1), put('b', 1)])
    await query(store, `CREATE TRIGGER keep BEFORE DELETE ON keyv BEGIN SELECT RAISE(ABORT, 'kept'); END`)
    const refused = await refusal(store.save([put('a', 2), put('c', 2), remove('b')]))
    expect(refused).to.include({ code: 'ERR_STORE_WRITE', retryable: true })
    expect(refused.message).to.contain('kept').and.contain('a.sqlite')
    expect(await readAll(store)).to.deep.equal({ a: 1, b: 1 })
    await query(store, 'DROP TRIGGER keep')
    await store.save([put('a', 3), remove('b')])
    expect(await readAll(store)).to.deep.equal({ a: 3 })
    await store.close()
  })

  it('saves more rows than one statement takes as one transaction', async () => {
    const store = await sqliteStore({ file: scratch.file('a.sqlite') })
    const keys = Array.from({ length: 25_000 }, (_, at) => `key/${at}`)
    await store.save(keys.map((key) => put(key, 1)))
    expect(Object.keys(await readAll(store))).to.have.length(25_000)
    const refused = await refusal(store.save([...keys.map(remove), put('amount', 1n)]))
    expect(refused.code).to.equal('ERR_STORE_WRITE')
    expect(Object.keys(await readAll(store))).to.have.length(25_000)
    await store.save(keys.map(remove))
    expect(await readAll(store)).to.deep.equal({})
    await store.close()
  })

  it('does not begin to read in the middle of a batch', async () => {
    const store = await sqliteStore({ file: scratch.file('a.sqlite') })
    await store.save([put('old', 1)])
    const saved = store.save([put('new', 1), remove('old')])
    expect(await readAll(store)).to.deep.equal({ new: 1 })
    await saved
    await store.close()
  })

  it('waits for another process that writes, then says that the file is busy, and goes on when it is free', async () => {
    const file = scratch.file('a.sqlite')
    const store = await sqliteStore({ file, busyTimeoutMs: 50 })
    const holder = await holdLock(file)
    for (const batch of [[put('a', 1)], [remove('a')], [put('a', 1), remove('b')]]) {
      const refused = await refusal(store.save(batch))
      expect(refused).to.include({ code: 'ERR_STORE_WRITE', retryable: true })
      expect(refused.details.busy).to.equal(true)
    }
    await holder.kill()
    await store.save([put('a', 1)])
    expect(await readAll(store)).to.deep.equal({ a: 1 })
    await store.close()
  })

  describe('opened on what it cannot use', () => {
    const rows: [what: string, make: (file: string) => void][] = [
      ['a file that is no database', (file) => writeFileSync(file, 'no database at all, but long enough'.repeat(100))],
      ['a directory', (file) => mkdirSync(file)],
    ]
    for (const [what, make] of rows) {
      it(`rejects ${what}`, async () => {
        make(scratch.file('a.sqlite'))
        const refused = await refusal(sqliteStore({ file: scratch.file('a.sqlite') }))
        expect(refused.code).to.equal('ERR_STORE_READ')
        expect(refused.message).to.contain('a.sqlite')
      })
    }

    it('rejects a directory that is not there', async () => {
      expect((await refusal(sqliteStore({ file: scratch.file('no/a.sqlite') }))).code).to.equal('ERR_STORE_READ')
    })

    it('rejects while another process holds the file, and opens when it is free', async () => {
      const file = scratch.file('a.sqlite')
      const holder = await holdLock(file)
      const refused = await refusal(sqliteStore({ file, busyTimeoutMs: 50 }))
      expect(refused.code).to.equal('ERR_STORE_READ')
      expect(refused.details.busy).to.equal(true)
      await holder.kill()
      const store = await sqliteStore({ file })
      await store.save([put('a', 1)])
      await store.close()
    })
  })
})
