import { PlugstreamError } from '../errors.js'
import type { StateStore, StoreRecord, StoreWrite } from '../store/state-store.js'
import { decodeRecord, decodeSequence, recordPrefix, sequenceKey, type PluginRecord } from './record.js'
import { copyOf, quarantinePrefix } from '../stored-record.js'
import { RegistryState } from './registry-state.js'
import { Sequence } from './sequence.js'

/** What a registry begins with. */
export interface Restored {
  state: RegistryState
  sequence: Sequence
  /** What has to be saved before anybody hears of what was restored. */
  writes: readonly StoreWrite[]
}

/**
 * Reads what an earlier run has saved. A record that cannot be read stays where it is, is kept in `state.unreadable`, and hides no
 * other.
 *
 * @param at Unix ms.
 * @throws ERR_STORE_READ where the store fails: what cannot be read at all is not nothing.
 */
export async function restore(store: Pick<StateStore, 'read'>, at: number): Promise<Restored> {
  const state = new RegistryState()
  const writes: StoreWrite[] = []
  let reserved = 0
  for await (const record of store.read(sequenceKey)) {
    if (record.key !== sequenceKey) continue
    const read = attempt(state, record, decodeSequence)
    // No count of events overtakes the clock's milliseconds, so the numbers go on above all that were ever used.
    reserved = read ?? at
    if (read === undefined) writes.push({ kind: 'put', key: quarantinePrefix + sequenceKey, value: copyOf(record) })
  }
  const records: PluginRecord[] = []
  for await (const record of store.read(recordPrefix)) {
    const read = attempt(state, record, decodeRecord)
    if (read) records.push(read)
  }
  const sequence = new Sequence(reserved)
  const reservation = sequence.reserve(records.length)
  for (const record of records.sort(byOrder)) state.restore(record, sequence.next(), at)
  if (reservation && (records.length > 0 || writes.length > 0)) writes.push(reservation)
  return { state, sequence, writes }
}

function attempt<T>(state: RegistryState, record: StoreRecord, decode: (record: StoreRecord) => T): T | undefined {
  try {
    return decode(record)
  } catch (failure) {
    const problem = PlugstreamError.from(failure, 'ERR_STORE_CORRUPT', `reading ${record.key}`)
    state.unreadable.set(record.key, { problem, copy: copyOf(record), setAside: false })
    return undefined
  }
}

/** Two of the same order were not written by one registry; any fixed order will do. */
function byOrder(a: PluginRecord, b: PluginRecord): number {
  return (
    a.order - b.order || a.plugin.registeredAt - b.plugin.registeredAt || (a.plugin.allocId < b.plugin.allocId ? -1 : 1)
  )
}
