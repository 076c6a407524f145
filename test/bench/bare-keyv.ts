import { KeyvSqlite } from '@keyv/sqlite'
import { Keyv } from 'keyv'

/** What records are kept with without the library: a Keyv on a file, in the same modes as the library's own. */
export async function bareKeyv(file: string): Promise<Keyv> {
  const store = new KeyvSqlite({ uri: `sqlite://${file}`, busyTimeout: 5_000 })
  await store.query('PRAGMA journal_mode=WAL')
  await store.query('PRAGMA synchronous=FULL')
  return new Keyv({ store, throwOnErrors: true })
}
