import type { TextMap } from '../csi/codec.js'
import type { CapacityRange } from '../csi/messages/shared.js'
import { escapePathPart } from '../path-escape.js'
import type { StoreRecord } from '../store/state-store.js'
import { corrupt, fieldsOf } from '../stored-record.js'
import { withSizes } from './stored-sizes.js'
import type { TakenRef } from './take-mount.js'
import type { VolumeAccess } from './volume.js'

/** The schema of the records written here. One that is higher was written by a newer version, which knew what it meant. */
const schema = 1

/** Every record of a volume is under this prefix. */
export const volumePrefix = 'volume/'

/** One use of a volume: `held` from before the first call for it, until somebody wants it gone. */
export interface Claim {
  allocId: string
  mountName?: string
  access: VolumeAccess
  path: string
  held: boolean
}

/**
 * What is known of a volume across restarts. It is saved before the calls that make it true and after those that undo it, so that all
 * that may be there is in it.
 */
export interface VolumeRecord extends TakenRef {
  /** The volume root of the plugin, which every path is below. */
  root: string
  secretsRef?: string
  volumeContext?: TextMap
  /** Given by who attached the volume, or by the plugin where the host has. */
  publishContext?: TextMap
  /** The node the host has attached it to. */
  attachedTo?: string
  /** The start of the machine since which all this is so. */
  bootId?: string
  /** The one place where it is staged. */
  stage?: { access: VolumeAccess; path: string }
  claims: readonly Claim[]
  /** What it is to grow to, from before the first call for it until it is known what became of it. */
  growth?: Growth
}

export interface Growth {
  capacityRange: CapacityRange
  /** Where it is another than that of the volume. */
  secretsRef?: string
}

/** One key a volume; no two share one. */
export function volumeKey({ plugin, namespace, volumeId }: TakenRef): string {
  return volumePrefix + [plugin, namespace, volumeId].map(escapePathPart).join('/')
}

/** The path tells claims of one volume apart: it has the alloc, the name of the mount and the usage in it. */
export function claimOf(record: VolumeRecord | undefined, path: string): Claim | undefined {
  return record?.claims.find((claim) => claim.path === path)
}

/** The record with a claim in the place of the one at its path, or after the others. */
export function withClaim(record: VolumeRecord, claim: Claim): VolumeRecord {
  const at = record.claims.findIndex(({ path }) => path === claim.path)
  const claims = at < 0 ? [...record.claims, claim] : record.claims.with(at, claim)
  return { ...record, claims }
}

export function withoutClaim(record: VolumeRecord, path: string): VolumeRecord {
  return { ...record, claims: record.claims.filter((claim) => claim.path !== path) }
}

/** The record without a field that may be left out. */
export function without<Field extends 'stage' | 'attachedTo' | 'publishContext' | 'growth'>(
  record: VolumeRecord,
  ...fields: readonly Field[]
): VolumeRecord {
  const kept = Object.entries(record).filter(([field]) => !fields.some((one) => one === field))
  return Object.fromEntries(kept) as unknown as VolumeRecord
}

export function newRecord({ plugin, namespace, volumeId }: TakenRef, root: string): VolumeRecord {
  return { plugin, namespace, volumeId, root, claims: [] }
}

export function encodeVolume({ growth, ...record }: VolumeRecord): unknown {
  return { schema, ...record, ...(growth && { growth: withSizes(growth, String) }) }
}

/**
 * @throws ERR_STORE_CORRUPT where the record cannot be decoded or is none of a volume, ERR_STORE_READ where a newer version wrote it;
 * `details.key` says which.
 */
export function decodeVolume(record: StoreRecord): VolumeRecord {
  const { key } = record
  const value = fieldsOf(record, schema) as Partial<VolumeRecord>
  const texts = [value.plugin, value.namespace, value.volumeId, value.root]
  if (!texts.every((text) => typeof text === 'string' && text !== '')) throw corrupt(key, 'a field is missing')
  if (!Array.isArray(value.claims) || !value.claims.every(isClaim)) throw corrupt(key, 'its claims cannot be read')
  if (value.stage !== undefined && !isPlace(value.stage)) throw corrupt(key, 'its stage cannot be read')
  const volume = value as VolumeRecord
  if (volume.growth !== undefined) volume.growth = growthOf(key, volume.growth)
  if (volumeKey(volume) !== key) throw corrupt(key, 'it is the record of another volume')
  return volume
}

function growthOf(key: string, growth: object): Growth {
  try {
    const { capacityRange } = growth as Partial<Growth>
    if (!capacityRange) throw corrupt(key, 'its growth cannot be read')
    return withSizes(growth, BigInt) as Growth
  } catch (failure) {
    throw corrupt(key, 'its growth cannot be read', failure)
  }
}

function isClaim(value: unknown): value is Claim {
  const { allocId, held } = Object(value) as Partial<Record<keyof Claim, unknown>>
  return isPlace(value) && typeof allocId === 'string' && typeof held === 'boolean'
}

function isPlace(value: unknown): boolean {
  const { path, access } = Object(value) as { path?: unknown; access?: Partial<VolumeAccess> }
  const isAccess = (access?.kind === 'mount' || access?.kind === 'block') && typeof access.accessMode === 'string'
  return typeof path === 'string' && path.startsWith('/') && isAccess
}
