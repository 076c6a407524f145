import { foldBatch, plainText } from './batch.js'
import type { StateStore, StoreRecord } from './state-store.js'
import { Turns } from './turns.js'

/**
 * A store that lasts as long as its map: for tests, and for hosts that need nothing kept. Holds JSON text, so that it keeps exactly
 * what a store on disk would keep.
 *
 * @param records what is there already, key to JSON text; give the same map to a second store to reopen it. Default: nothing.
 * @example const registry = await Registry.open({ store: memoryStore() })
 */
export function memoryStore(records = new Map<string, string>()): StateStore {
  const turns = new Turns()
  return {
    atomic: true,
    async *read(prefix) {
      const found = await turns.take(async () => [...records].filter(([key]) => key.startsWith(prefix)))
      for (const [key, raw] of found) yield decode(key, raw)
    },
    save: async (batch) => {
      const texts = foldBatch(batch).map(
        (write) => [write.key, write.kind === 'put' ? plainText(write.key, write.value) : undefined] as const,
      )
      await turns.take(async () => {
        for (const [key, text] of texts) {
          if (text === undefined) records.delete(key)
          else records.set(key, text)
        }
      })
    },
    close: () => turns.close(async () => undefined),
  }
}

function decode(key: string, raw: string): StoreRecord {
  try {
    return { key, raw, value: JSON.parse(raw) }
  } catch (error) {
    return { key, raw, error }
  }
}
