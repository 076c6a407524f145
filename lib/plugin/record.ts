import { messageOf } from '../errors.js'
import { escapePathPart } from '../path-escape.js'
import type { StoreRecord } from '../store/state-store.js'
import { corrupt, fieldsOf } from '../stored-record.js'
import type { PluginInfo, PluginRef } from './plugin.js'
import { pluginInfo, validDefinition } from './validate.js'

/** The schema of the records written here. One that is higher was written by a newer version, which knew what it meant. */
const schema = 1

/** Every record of an instance is under this prefix. */
export const recordPrefix = 'plugin/'
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
  const { order, plugin } = fieldsOf(record, schema) as { order: unknown; plugin: unknown }
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
  const { reserved } = fieldsOf(record, schema) as { reserved: unknown }
  if (!isNumber(reserved)) throw corrupt(record.key, 'it has no number')
  return reserved
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value)
