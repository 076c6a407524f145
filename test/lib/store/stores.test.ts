import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Keyv } from 'keyv'
import { keyvStore } from '../../../lib/store/keyv-store.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import { sqliteStore, type SqliteStore } from '../../../lib/store/sqlite-store.js'
import type { StateStore } from '../../../lib/store/state-store.js'
import { stateStoreSuite } from '../../conformance/index.js'

/** What each store was made over, for getting at it past the store. */
const maps = new WeakMap<StateStore, Map<string, string>>()
const files = new WeakMap<StateStore, string>()

const remember = <T extends WeakKey, V>(known: WeakMap<T, V>, key: T, value: V): T => {
  known.set(key, value)
  return key
}

const overMap = (map: Map<string, string>): StateStore => remember(maps, keyvStore(new Keyv({ store: map })), map)

const sqliteAt = async (file: string): Promise<StateStore> => remember(files, await sqliteStore({ file }), file)

const queryOf = (store: StateStore): ((sql: string, ...values: unknown[]) => Promise<unknown>) =>
  ((store as SqliteStore).keyv.store as { query: (sql: string, ...values: unknown[]) => Promise<unknown> }).query

stateStoreSuite({ describe, it }, 'memory', {
  make: async () => {
    const records = new Map<string, string>()
    return remember(maps, memoryStore(records), records)
  },
  reopen: async (store) => memoryStore(maps.get(store)),
  corrupt: async (store, key) => void maps.get(store)?.set(key, '{"half":'),
})

stateStoreSuite({ describe, it }, 'Keyv over a Map', {
  make: async () => overMap(new Map<string, string>()),
  reopen: async (store) => overMap(maps.get(store) ?? new Map<string, string>()),
  corrupt: async (store, key) => void maps.get(store)?.set(`keyv:${key}`, '{"half":'),
  failWrites: async (store) => {
    const map = maps.get(store) as Map<string, string>
    const whole = { set: map.set, delete: map.delete }
    map.set = () => {
      throw new Error('the map is full')
    }
    map.delete = () => {
      throw new Error('the map is full')
    }
    return async () => void Object.assign(map, whole)
  },
})

stateStoreSuite({ describe, it }, 'Keyv over a Map, nothing serialised', {
  make: async () => keyvStore(new Keyv({ store: new Map(), serialize: undefined, deserialize: undefined } as object)),
})

stateStoreSuite({ describe, it }, 'SQLite', {
  make: async () => sqliteAt(join(await mkdtemp(join(tmpdir(), 'plugstream-store-')), 'state.sqlite')),
  reopen: async (store) => sqliteAt(files.get(store) as string),
  corrupt: async (store, key) =>
    void (await queryOf(store)('UPDATE keyv SET value = ? WHERE key = ?', '{"half":', `keyv:${key}`)),
  failWrites: async (store) => {
    await queryOf(store)('PRAGMA query_only=1')
    return async () => void (await queryOf(store)('PRAGMA query_only=0'))
  },
  dispose: async (store) => rm(dirname(files.get(store) as string), { recursive: true }),
})
