import { KeyvSqlite } from '@keyv/sqlite'

/**
 * Opens a SQLite file through its Keyv adapter and runs `statements`, the first of them in this very turn: an adapter that fails to
 * open before anything was asked of it ends the process with an unhandled rejection. One that failed to open never recovers, so trying
 * again means calling this again.
 *
 * @returns the adapter, and what the last statement answered.
 * @throws what the engine throws; the file is closed.
 */
export async function openSqlite(
  init: { file: string; busyTimeoutMs: number; table: string },
  statements: readonly string[],
): Promise<{ adapter: KeyvSqlite; rows: readonly unknown[][] }> {
  const adapter = new KeyvSqlite({ uri: `sqlite://${init.file}`, busyTimeout: init.busyTimeoutMs, table: init.table })
  adapter.on('error', () => undefined) // each failure is also a rejection of the call that met it
  try {
    const rows: unknown[][] = []
    for (const statement of statements) rows.push((await adapter.query(statement)) as unknown[])
    return { adapter, rows }
  } catch (failure) {
    await adapter.close().catch(() => undefined) // rejects where it never opened
    throw failure
  }
}
