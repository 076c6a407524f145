import { foldBatch, plainText } from './batch.js'
import type { PlugstreamError } from '../errors.js'
import { decodeEntry, entriesOf, keyPrefix } from './keyv-entries.js'
import type { KeyvLike, StateStore, StoreWrite } from './state-store.js'
import { readFailed, writeFailed } from './store-error.js'
import { Turns } from './turns.js'

/** Keyv's word for "without end", where the Keyv has a time to live of its own: a registration does not expire. */
const forEver = 0

/**
 * A store over any Keyv whose adapter can iterate. A Keyv knows no transactions, so a batch that fails may be saved in part. The Keyv
 * stays its owner's: it is never cleared and not disconnected; only `throwOnErrors` is set, since without it Keyv answers most
 * failures with "not there".
 *
 * @throws ERR_OPTION_INVALID where the adapter cannot iterate.
 * @example keyvStore(new Keyv({ store: new KeyvRedis('redis://localhost') }))
 */
export function keyvStore(keyv: KeyvLike): StateStore {
  const entries = entriesOf(keyv)
  const prefix = keyPrefix(keyv)
  if ('throwOnErrors' in keyv) keyv.throwOnErrors = true
  const turns = new Turns()
  return {
    atomic: false,
    async *read(wanted) {
      const found = await turns
        .take(async () => {
          const records = []
          for await (const entry of entries(wanted)) if (entry[0].startsWith(wanted)) records.push(entry)
          return records
        })
        .catch((cause: unknown) => Promise.reject(readFailed('reading from the Keyv', cause)))
      for (const entry of found) {
        const record = await decodeEntry(keyv, entry)
        if (record) yield record
      }
    },
    save: async (batch) => {
      const writes = foldBatch(batch, prefix).map(copyOf)
      await turns.take(async () => {
        // All are waited for, also after one has failed: a late one must not overtake what is saved next.
        const results = await Promise.allSettled(writes.map((write) => carryOut(keyv, write)))
        const failure = results.find((result) => result.status === 'rejected')
        if (failure) throw failure.reason as PlugstreamError
      })
    },
    close: () => turns.close(async () => undefined),
  }
}

/** As it is now: it may have to wait, and a Keyv over a Map may hold the very object it is given. */
function copyOf(write: StoreWrite): StoreWrite {
  return write.kind === 'delete' ? write : { ...write, value: JSON.parse(plainText(write.key, write.value)) as unknown }
}

async function carryOut(keyv: KeyvLike, write: StoreWrite): Promise<void> {
  try {
    if (write.kind === 'put') {
      if ((await keyv.set(write.key, write.value, forEver)) === false)
        throw new Error('the Keyv answered that it did not')
    } else if ((await keyv.delete(write.key)) === false && (await keyv.get(write.key)) !== undefined) {
      throw new Error('the Keyv answered that it did not, and the record is still there')
    }
  } catch (cause) {
    throw writeFailed(`${write.kind === 'put' ? 'saving' : 'deleting'} ${write.key}`, cause, { key: write.key })
  }
}
