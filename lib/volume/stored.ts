import { messageOf, PlugstreamError } from '../errors.js'
import type { StoreRecord } from '../store/state-store.js'

/**
 * What is in a record that says which schema it has.
 *
 * @throws ERR_STORE_CORRUPT where it cannot be decoded, ERR_STORE_READ where a newer version wrote it; `details.key` says which.
 */
export function fieldsOf(record: StoreRecord, schema: number): object {
  const { key } = record
  if ('error' in record) throw corrupt(key, messageOf(record.error), record.error)
  const { schema: written, ...fields } = Object(record.value) as { schema?: unknown }
  if (typeof written === 'number' && written > schema)
    throw new PlugstreamError('ERR_STORE_READ', `the record ${key} was written by a newer version`, {
      details: { key, schema: written },
    })
  if (written !== schema) throw corrupt(key, 'its schema is unknown')
  return fields
}

export function corrupt(key: string, why: string, cause?: unknown): PlugstreamError {
  return new PlugstreamError('ERR_STORE_CORRUPT', `the record ${key} cannot be read: ${why}`, {
    cause,
    details: { key },
  })
}
