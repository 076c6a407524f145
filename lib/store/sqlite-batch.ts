import { messageOf } from '../errors.js'
import type { SqliteAdapter } from './keyv-entries.js'

/** SQLite takes 32,766 values a statement; a row has two. */
const rowsPerStatement = 10_000

/** A key and the text to put there, or nothing where the row is to go. No key twice in a batch. */
export type SqliteRow = readonly [key: string, text: unknown]

/**
 * Saves batches through the adapter's `query`: one statement where that is enough, which is a transaction by itself, otherwise several
 * in one transaction. Not to be entered twice at a time: the connection has one transaction.
 */
export class SqliteBatch {
  /** A transaction that could be neither committed nor rolled back is still open: what is written now would not be kept. */
  #stuck = false
  readonly #adapter: SqliteAdapter

  constructor(adapter: SqliteAdapter) {
    this.#adapter = adapter
  }

  async save(rows: readonly SqliteRow[]): Promise<void> {
    const puts = rows.filter(([, text]) => text !== undefined)
    const keys = rows.filter(([, text]) => text === undefined).map(([key]) => key)
    const { table = 'keyv' } = this.#adapter.opts
    const statements = [
      ...chunks(puts).map((chunk) => ({ sql: upsert(table, chunk.length), values: chunk.flat() })),
      ...chunks(keys).map((chunk) => ({ sql: remove(table, chunk.length), values: chunk })),
    ]
    if (this.#stuck) await this.#rollBack()
    if (this.#stuck) throw new Error('an earlier transaction could not be ended')
    if (statements.length > 1) return this.#inTransaction(statements)
    for (const { sql, values } of statements) await this.#adapter.query(sql, values)
  }

  async #inTransaction(statements: readonly { sql: string; values: readonly unknown[] }[]): Promise<void> {
    await this.#adapter.query('BEGIN IMMEDIATE')
    try {
      for (const { sql, values } of statements) await this.#adapter.query(sql, values)
      await this.#adapter.query('COMMIT')
    } catch (failure) {
      await this.#rollBack()
      throw failure
    }
  }

  /** SQLite rolls back by itself after some failures, as of a full disk, and then says that there is nothing to roll back. */
  async #rollBack(): Promise<void> {
    try {
      await this.#adapter.query('ROLLBACK')
      this.#stuck = false
    } catch (failure) {
      this.#stuck = !messageOf(failure).includes('no transaction is active')
    }
  }
}

function upsert(table: string, rows: number): string {
  const values = new Array(rows).fill('(?,?)').join(',')
  return `INSERT INTO ${table} (key, value) VALUES ${values} ON CONFLICT(key) DO UPDATE SET value=excluded.value`
}

function remove(table: string, keys: number): string {
  return `DELETE FROM ${table} WHERE key IN (${new Array(keys).fill('?').join(',')})`
}

function chunks<T>(items: readonly T[]): T[][] {
  const found: T[][] = []
  for (let at = 0; at < items.length; at += rowsPerStatement) found.push(items.slice(at, at + rowsPerStatement))
  return found
}
