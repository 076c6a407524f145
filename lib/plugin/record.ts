import { messageOf, PlugstreamError } from '../errors.js'
import { escapePathPart } from '../path-escape.js'
import type { StoreRecord } from '../store/state-store.js'
import type { PluginInfo, PluginRef } from './plugin.js'
import { pluginInfo, validDefinition } from './validate.js'

/** The schema of the records written here. One that is higher was written by a newer version, which knew what it meant. */
const schema = 1

/** Every record of an instance is under this prefix, and every copy of one that was set aside under the other. */
export const recordPrefix = 'plugin/'
export const quarantinePrefix = 'quarantine/'
export const sequenceKey = 'registry/sequence'

/** What is known of an instance across restarts. */
export interface PluginRecord {
  plugin: PluginInfo
  /** Its place among all registrations: the higher, the newer. */
  order: number
}

/** One key an instance; no two refs share one. */
export function recordKey({ type, name, allocId }: PluginRef): string {
  return `${recordPrefix}${escapePathPart(type)}/${escapePathPart(name)}/${escapePathPart(allocId)}`
}

export function encodeRecord({ plugin, order }: PluginRecord): unknown {
  return { schema, order, plugin }
}

/**
 * @throws ERR_STORE_CORRUPT where the record cannot be decoded or is none of an instance, ERR_STORE_READ where a newer version wrote
 * it; `details.key` says which.
 */
export function decodeRecord(record: StoreRecord): PluginRecord {
  const { order, plugin } = fields(record) as { order: unknown; plugin: unknown }
  if (!isNumber(order)) throw corrupt(record.key, 'it has no order')
  const registeredAt = (plugin as Partial<PluginInfo> | undefined)?.registeredAt
  if (!isNumber(registeredAt)) throw corrupt(record.key, 'it has no time of registration')
  let definition
  try {
    definition = validDefinition(plugin)
  } catch (cause) {
    throw corrupt(record.key, messageOf(cause), cause)
  }
  if (recordKey(definition) !== record.key) throw corrupt(record.key, 'it is the record of another instance')
  return { plugin: pluginInfo(definition, registeredAt), order }
}

export function encodeSequence(reserved: number): unknown {
  return { schema, reserved }
}

/** @throws as `decodeRecord`. */
export function decodeSequence(record: StoreRecord): number {
  const { reserved } = fields(record) as { reserved: unknown }
  if (!isNumber(reserved)) throw corrupt(record.key, 'it has no number')
  return reserved
}

function fields(record: StoreRecord): object {
  if ('error' in record) throw corrupt(record.key, messageOf(record.error), record.error)
  const { value } = record
  if (typeof value !== 'object' || value === null || !('schema' in value)) throw corrupt(record.key, 'it has no schema')
  if (value.schema === schema) return value
  if (!isNumber(value.schema) || value.schema < schema) throw corrupt(record.key, 'its schema is unknown')
  throw new PlugstreamError(
    'ERR_STORE_READ',
    `the record ${record.key} was written by a newer version (schema ${value.schema}; this one knows ${schema})`,
    { details: { key: record.key, schema: value.schema } },
  )
}

function corrupt(key: string, why: string, cause?: unknown): PlugstreamError {
  return new PlugstreamError('ERR_STORE_CORRUPT', `the record ${key} cannot be read: ${why}`, {
    cause,
    details: { key },
  })
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value)
