import { messageOf, PlugstreamError } from './errors.js'
import type { StoreRecord } from './store/state-store.js'

/** Every copy of a record that was set aside is under this prefix, by the key it had. */
export const quarantinePrefix = 'quarantine/'

/** What is set aside of a record: its value where it has one, otherwise what the store holds. */
export const copyOf = (record: StoreRecord): unknown => ('value' in record ? record.value : record.raw)

/**
 * The fields of a record that says which schema it has. One of a higher schema was written by a newer version, which knew what it meant.
 *
 * @throws ERR_STORE_CORRUPT where it cannot be decoded, ERR_STORE_READ where a newer version wrote it; `details.key` says which.
 */
export function fieldsOf(record: StoreRecord, schema: number): object {
  const { key } = record
  if ('error' in record) throw corrupt(key, messageOf(record.error), record.error)
  const { value } = record
  if (typeof value !== 'object' || value === null || !('schema' in value)) throw corrupt(key, 'it has no schema')
  const { schema: written, ...fields } = value
  if (written === schema) return fields
  if (!Number.isSafeInteger(written) || (written as number) < schema) throw corrupt(key, 'its schema is unknown')
  throw new PlugstreamError(
    'ERR_STORE_READ',
    `the record ${key} was written by a newer version (schema ${String(written)}; this one knows ${schema})`,
    { details: { key, schema: written as number } },
  )
}

export function corrupt(key: string, why: string, cause?: unknown): PlugstreamError {
  return new PlugstreamError('ERR_STORE_CORRUPT', `the record ${key} cannot be read: ${why}`, {
    cause,
    details: { key },
  })
}
