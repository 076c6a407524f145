import { messageOf } from '../errors.js'
import type { StoreRecord } from '../store/state-store.js'
import type { ControllerCall } from './controller-call.js'
import { corrupt, fieldsOf } from './stored.js'

/** Every record of a call that it is not known of what became of it is under this prefix. */
export const callPrefix = 'volume-call/'

/** A call of a controller, without its secrets. */
export interface PendingCall {
  plugin: string
  call: ControllerCall
  /** The id or the name of what it is about. */
  id: string
  request: object
  secretsRef?: string
}

const schema = 1

/** JSON knows no bigint; of requests, only a capacity range has some. */
export function encodeCall({ request, ...pending }: PendingCall): unknown {
  const { capacityRange, ...rest } = request as { capacityRange?: Record<string, bigint> }
  const sizes = capacityRange && Object.fromEntries(Object.entries(capacityRange).map(([k, v]) => [k, String(v)]))
  return { schema, ...pending, request: { ...rest, ...(sizes && { capacityRange: sizes }) } }
}

/** @throws ERR_STORE_CORRUPT, ERR_STORE_READ where a newer version wrote it; `details.key` says which. */
export function decodeCall(record: StoreRecord): PendingCall {
  const { plugin, call, id, request, secretsRef } = fieldsOf(record, schema) as Partial<PendingCall>
  const texts = [plugin, call, id]
  if (!texts.every((text) => typeof text === 'string' && text !== '') || typeof request !== 'object')
    throw corrupt(record.key, 'a field is missing')
  const { capacityRange, ...rest } = request as { capacityRange?: Record<string, string> }
  try {
    const sizes = capacityRange && Object.fromEntries(Object.entries(capacityRange).map(([k, v]) => [k, BigInt(v)]))
    return {
      plugin: plugin as string,
      call: call as ControllerCall,
      id: id as string,
      request: { ...rest, ...(sizes && { capacityRange: sizes }) },
      ...(secretsRef !== undefined && { secretsRef }),
    }
  } catch (failure) {
    throw corrupt(record.key, messageOf(failure), failure)
  }
}
