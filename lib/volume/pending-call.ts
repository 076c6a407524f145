import { messageOf } from '../errors.js'
import { escapePathPart } from '../path-escape.js'
import type { StoreRecord } from '../store/state-store.js'
import type { ControllerCall } from './controller-call.js'
import { corrupt, fieldsOf } from '../stored-record.js'
import { withSizes } from './stored-sizes.js'

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

/** What each call changes. */
const changes: Readonly<Record<ControllerCall, string>> = {
  createVolume: 'volume',
  deleteVolume: 'volume',
  controllerPublishVolume: 'attachment',
  controllerUnpublishVolume: 'attachment',
  controllerExpandVolume: 'size',
  controllerModifyVolume: 'parameters',
  createSnapshot: 'snapshot',
  deleteSnapshot: 'snapshot',
  createVolumeGroupSnapshot: 'group-snapshot',
  deleteVolumeGroupSnapshot: 'group-snapshot',
}

/** One for all calls that change the same: each follows on the one before, or undoes it. The attachment to a node is below that to all. */
export function callKey({ plugin, call, id, request }: PendingCall): string {
  const { nodeId } = request as { nodeId?: string }
  const parts = [plugin, id, changes[call], ...(nodeId ? [nodeId] : [])]
  return callPrefix + parts.map(escapePathPart).join('/')
}

/** JSON knows no bigint; of requests, only a capacity range has some. */
export function encodeCall({ request, ...pending }: PendingCall): unknown {
  return { schema, ...pending, request: withSizes(request, String) }
}

/** @throws ERR_STORE_CORRUPT, ERR_STORE_READ where a newer version wrote it; `details.key` says which. */
export function decodeCall(record: StoreRecord): PendingCall {
  const { key } = record
  const { plugin, call, id, request, secretsRef } = fieldsOf(record, schema) as Partial<
    Record<keyof PendingCall, unknown>
  >
  const texts = [plugin, call, id, ...(secretsRef === undefined ? [] : [secretsRef])]
  if (!texts.every((text) => typeof text === 'string' && text !== '') || typeof request !== 'object' || !request)
    throw corrupt(key, 'a field is missing')
  const pending = { plugin, call, id, ...(secretsRef !== undefined && { secretsRef }) } as PendingCall
  if (!Object.hasOwn(changes, pending.call)) throw corrupt(key, 'its call is unknown')
  try {
    pending.request = withSizes(request, BigInt)
  } catch (failure) {
    throw corrupt(key, messageOf(failure), failure)
  }
  if (callKey(pending) !== key) throw corrupt(key, 'it is the record of another call')
  return pending
}
