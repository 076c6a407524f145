import type { KeyvSqlite } from '@keyv/sqlite'
import { Keyv } from 'keyv'
import { invalidOption, PlugstreamError } from '../errors.js'
import { fieldsOf, takeOptions } from '../options.js'
import { foldBatch } from './batch.js'
import { decodePlainEntry, keyPrefix, selectRows } from './keyv-entries.js'
import { SqliteBatch, type SqliteRow } from './sqlite-batch.js'
import { openSqlite } from './sqlite-file.js'
import type { StateStore, StoreWrite } from './state-store.js'
import { readFailed, writeFailed } from './store-error.js'
import { Turns } from './turns.js'

/** What the embedded store is opened with. */
export interface SqliteInit {
  /** The file; made where it is missing, its directory is not. */
  file: string
  /** How long a save waits while another process writes to the file. Default: 5 000. */
  busyTimeoutMs?: number | undefined
}

const initFields = fieldsOf<SqliteInit>({ file: true, busyTimeoutMs: true })

export interface SqliteStore extends StateStore {
  /** The Keyv this stands on. Writing through it while the store is open is as safe as any other Keyv, and no part of a batch. */
  readonly keyv: Keyv
}

/**
 * The embedded default: Keyv on @keyv/sqlite, in the table and namespace any `new Keyv(new KeyvSqlite(…))` uses, so that either reads
 * what the other wrote. A batch is one transaction, and one flush to disk. WAL with synchronous FULL: what was acknowledged survives
 * a power cut.
 *
 * @throws ERR_OPTION_INVALID naming the field; ERR_STORE_READ where the file cannot be opened, is no database, or is held by another process.
 * @example const store = await sqliteStore({ file: '/var/lib/agent/state.sqlite' })
 */
export async function sqliteStore(init: SqliteInit): Promise<SqliteStore> {
  const { file, busyTimeoutMs = 5_000 } = takeOptions('init', init, initFields)
  if (typeof file !== 'string' || file === '') throw invalidOption('file', file, 'the path of a file')
  const adapter = await open(file, busyTimeoutMs)
  const keyv = new Keyv({ store: adapter, throwOnErrors: true })
  const prefix = keyPrefix(keyv)
  const batches = new SqliteBatch(adapter)
  const turns = new Turns()
  const rowOf = async (write: StoreWrite): Promise<SqliteRow> => [
    prefix + write.key,
    write.kind === 'put' ? await keyv.serializeData({ value: write.value ?? null, expires: undefined }) : undefined,
  ]
  return {
    keyv,
    atomic: true,
    async *read(wanted) {
      const rows = await turns
        .take(() => selectRows(adapter, prefix + wanted))
        .catch((cause: unknown) => Promise.reject(readFailed(`reading ${file}`, cause)))
      for (const { key, value } of rows) {
        const decoded = decodePlainEntry(keyv, key.slice(prefix.length), value)
        const record = decoded instanceof Promise ? await decoded : decoded
        if (record) yield record
      }
    },
    save: async (batch) => {
      // Serialised in this very turn, as the values are now; a failure is told when it is awaited below.
      const rows = Promise.all(foldBatch(batch, prefix).map(rowOf))
      rows.catch(() => undefined)
      await turns
        .take(async () => batches.save(await rows))
        .catch((cause: unknown) => Promise.reject(writeFailed(`writing ${file}`, cause)))
    },
    close: () => turns.close(() => keyv.disconnect()),
  }
}

async function open(file: string, busyTimeoutMs: number): Promise<KeyvSqlite> {
  const statements = ['PRAGMA journal_mode=WAL', 'PRAGMA synchronous=FULL', 'PRAGMA synchronous']
  const opened = await openSqlite({ file, busyTimeoutMs, table: 'keyv' }, statements).catch((cause: unknown) =>
    Promise.reject(readFailed(`opening ${file}`, cause)),
  )
  const [journal, , synchronous] = opened.rows as [[{ journal_mode: string }], [], [{ synchronous: number }]]
  if (journal[0].journal_mode === 'wal' && synchronous[0].synchronous === 2) return opened.adapter
  await opened.adapter.close()
  throw new PlugstreamError('ERR_STORE_READ', `${file} is on a file system where SQLite cannot keep a write-ahead log`)
}
