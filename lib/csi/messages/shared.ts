import { int64, list, record, required, text, textMap, unfit, type Reads, type TextMap, type Writes } from '../codec.js'
import type { CapacityRange as WireRange } from '../generated/csi/v1/CapacityRange.js'
import type { Topology as WireTopology, Topology__Output } from '../generated/csi/v1/Topology.js'
import type { TopologyRequirement as WireRequirement } from '../generated/csi/v1/TopologyRequirement.js'
import type {
  VolumeContentSource as WireSource,
  VolumeContentSource__Output,
} from '../generated/csi/v1/VolumeContentSource.js'
import { request } from '../message.js'

/** Credentials for one call. Passed to the plugin, and nowhere shown, logged or stored. */
export type Secrets = TextMap

/** A place, as key and value of every level: region, zone, rack. Values may be empty. */
export type Topology = TextMap

/** How large a volume is to be; at least one of the two. */
export interface CapacityRange {
  requiredBytes?: bigint | undefined
  /** Not below `requiredBytes`. */
  limitBytes?: bigint | undefined
}

/** Where a volume has to be reachable from, and, of those places, where first. */
export interface TopologyRequirement {
  requisite?: readonly Topology[] | undefined
  preferred?: readonly Topology[] | undefined
}

/** What a new volume starts with. */
export type VolumeContentSource = { kind: 'snapshot'; snapshotId: string } | { kind: 'volume'; volumeId: string }

/** What a call that may need credentials takes besides. */
export interface WithSecrets {
  secrets?: Secrets | undefined
}

/** A request about one volume. */
export interface VolumeRequest extends WithSecrets {
  volumeId: string
}

/** A page of a list, to be asked for. */
export interface PageRequest {
  /** Most entries of a page. Default: the plugin chooses. */
  maxEntries?: number | undefined
  /** The `nextToken` of the page before. Default: the first page. */
  startingToken?: string | undefined
}

/** A page of a list. */
export interface Page<Entry> {
  entries: readonly Entry[]
  /** Absent: this is the last page. */
  nextToken?: string
}

const range = request<CapacityRange, WireRange>({ requiredBytes: int64, limitBytes: int64 })

export const capacityRange: Writes<CapacityRange | undefined, WireRange> = {
  write: (value, field) => {
    const written = range.write(value, field)
    if (value === undefined || written === undefined) return undefined
    const { requiredBytes = 0n, limitBytes = 0n } = value
    if (requiredBytes === 0n && limitBytes === 0n) throw unfit(field, 'must have requiredBytes or limitBytes')
    if (limitBytes !== 0n && limitBytes < requiredBytes)
      throw unfit(`${field}.limitBytes`, 'must not be below requiredBytes')
    return written
  },
}

export const topology: Writes<Topology | undefined, WireTopology> & Reads<Topology__Output, Topology> = {
  write: (value, field) => {
    const segments = textMap.write(value, field)
    return segments && { segments }
  },
  read: ({ segments }) => segments,
}

/** The one place of a node. None, one without segments: from everywhere. */
export const ownTopology: Reads<Topology__Output | null, Topology | undefined> = {
  read: (wire) => (wire && Object.keys(wire.segments).length > 0 ? wire.segments : undefined),
}

export const topologyRequirement = request<TopologyRequirement, WireRequirement>({
  requisite: list(topology),
  preferred: list(topology),
})

const snapshotSource = request<{ snapshotId: string }, { snapshot_id?: string }>({ snapshotId: required(text) })
const volumeSource = request<{ volumeId: string }, { volume_id?: string }>({ volumeId: required(text) })

export const volumeContentSource: Writes<VolumeContentSource | undefined, WireSource> &
  Reads<VolumeContentSource__Output | null, VolumeContentSource | undefined> = {
  write: (value, field) => {
    if (value === undefined) return undefined
    record(value, field)
    const { kind, ...source } = value as { kind: string }
    if (kind === 'snapshot') return { snapshot: snapshotSource.write(source as { snapshotId: string }, field) ?? {} }
    if (kind === 'volume') return { volume: volumeSource.write(source as { volumeId: string }, field) ?? {} }
    throw unfit(`${field}.kind`, 'must be snapshot or volume')
  },
  read: (wire) => {
    if (wire?.snapshot) return { kind: 'snapshot', snapshotId: wire.snapshot.snapshot_id }
    return wire?.volume ? { kind: 'volume', volumeId: wire.volume.volume_id } : undefined
  },
}
