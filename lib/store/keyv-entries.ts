import { invalidOption } from '../errors.js'
import { isObject } from '../options.js'
import type { KeyvLike, StoreRecord } from './state-store.js'

/** A key as it was given to the Keyv, and what its adapter holds. */
export type RawEntry = readonly [key: string, raw: unknown]

/** An adapter over SQLite. */
export interface SqliteAdapter {
  query(sql: string, ...values: unknown[]): Promise<unknown>
  opts: { table?: string }
}

interface IteratingAdapter {
  iterator(namespace?: string): AsyncIterable<RawEntry>
  opts?: { iterationLimit?: number | string }
}

/** Adapters read ten rows a page unless told otherwise, and recurse once a page. */
const pageRows = 1_000

/** What the Keyv puts in front of every key. */
export function keyPrefix(keyv: KeyvLike): string {
  return keyv.useKeyPrefix === false || !keyv.namespace ? '' : `${keyv.namespace}:`
}

/**
 * How the raw entries of a Keyv are read. Its own iterator is not used: it ends at the first value that cannot be decoded.
 * @throws ERR_OPTION_INVALID where its adapter cannot iterate.
 */
export function entriesOf(keyv: KeyvLike): (prefix: string) => AsyncIterable<RawEntry> {
  if (!isObject(keyv)) throw invalidOption('keyv', keyv, 'a Keyv')
  const store = Object(keyv.store) as object // one that is missing becomes an object that can nothing
  const own = keyPrefix(keyv)
  if (isSqlite(store)) return (prefix) => prefixed(selectEntries(store, own + prefix), own)
  if (isIterable(store)) return () => prefixed(Promise.resolve(store), own)
  if (isIterating(store)) return () => scanned(store, keyv.namespace, own)
  throw invalidOption('store', keyv.store, 'a Keyv whose adapter can iterate, or a state store')
}

/** Every row whose key begins with `prefix`. One statement, since pages by OFFSET skip rows when others vanish; no LIKE, no wildcards. */
export async function selectRows(
  adapter: SqliteAdapter,
  prefix: string,
): Promise<readonly { key: string; value: unknown }[]> {
  const sql = `SELECT key, value FROM ${adapter.opts.table ?? 'keyv'} WHERE key >= ? AND instr(key, ?) = 1`
  return (await adapter.query(sql, prefix, prefix)) as { key: string; value: unknown }[]
}

/**
 * Decodes one value as the Keyv would.
 * @returns undefined where the value is none: it vanished meanwhile, or its time to live is over.
 */
export async function decodeEntry(keyv: KeyvLike, [key, raw]: RawEntry): Promise<StoreRecord | undefined> {
  if (raw === undefined || raw === null) return undefined
  try {
    if (!keyv.deserializeData) return { key, raw, value: copy(await keyv.get(key)) }
    return recordOf(key, raw, typeof raw === 'string' ? await keyv.deserializeData(raw) : copy(raw))
  } catch (error) {
    return { key, raw, error }
  }
}

/**
 * As `decodeEntry`, for a Keyv that serialises as Keyv does by itself, at half the cost: only a text that begins with a colon is
 * written otherwise than JSON has it.
 */
export function decodePlainEntry(
  keyv: KeyvLike,
  key: string,
  raw: unknown,
): StoreRecord | undefined | Promise<StoreRecord | undefined> {
  if (typeof raw !== 'string') return decodeEntry(keyv, [key, raw])
  try {
    const data: unknown = JSON.parse(raw)
    return isMarked(data) ? decodeEntry(keyv, [key, raw]) : recordOf(key, raw, data)
  } catch (error) {
    return { key, raw, error }
  }
}

function isMarked(value: unknown): boolean {
  if (typeof value === 'string') return value.startsWith(':')
  if (typeof value !== 'object' || value === null) return false
  for (const key in value) if (isMarked((value as Record<string, unknown>)[key])) return true
  return false
}

function recordOf(key: string, raw: unknown, data: unknown): StoreRecord | undefined {
  if (!isData(data)) return { key, raw, error: new Error('it is no value of a Keyv') }
  if (typeof data.expires === 'number' && data.expires < Date.now()) return undefined
  return { key, raw, value: data.value }
}

/** Without serialisation a Keyv over a Map holds the very objects it was given. */
const copy = (value: unknown): unknown => (typeof value === 'object' ? structuredClone(value) : value)

async function selectEntries(adapter: SqliteAdapter, prefix: string): Promise<readonly RawEntry[]> {
  return (await selectRows(adapter, prefix)).map(({ key, value }) => [key, value])
}

/** The entries of a store that keeps the Keyv's prefix, and may hold those of others. */
async function* prefixed(entries: Promise<Iterable<RawEntry>>, own: string): AsyncGenerator<RawEntry> {
  for (const [key, raw] of await entries) if (key.startsWith(own)) yield [key.slice(own.length), raw]
}

/** The entries of an adapter of unknown manners: some strip the prefix from their keys, and a scan may tell a key twice. */
async function* scanned(store: IteratingAdapter, namespace: string | undefined, own: string): AsyncGenerator<RawEntry> {
  if (store.opts && !store.opts.iterationLimit) store.opts.iterationLimit = pageRows
  const seen = new Set<string>()
  for await (const [key, raw] of store.iterator(namespace)) {
    const plain = key.startsWith(own) ? key.slice(own.length) : key
    if (seen.has(plain)) continue
    seen.add(plain)
    yield [plain, raw]
  }
}

function isSqlite(store: object): store is SqliteAdapter {
  const { query, opts } = store as { query?: unknown; opts?: { dialect?: unknown; table?: unknown } }
  return typeof query === 'function' && opts?.dialect === 'sqlite' && typeof opts.table === 'string'
}

function isIterable(store: object): store is Iterable<RawEntry> {
  return typeof (store as Partial<Iterable<RawEntry>>)[Symbol.iterator] === 'function'
}

function isIterating(store: object): store is IteratingAdapter {
  return typeof (store as Partial<IteratingAdapter>).iterator === 'function'
}

function isData(data: unknown): data is { value: unknown; expires?: unknown } {
  return typeof data === 'object' && data !== null && 'value' in data
}
