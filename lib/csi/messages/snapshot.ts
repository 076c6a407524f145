import { count, flag, instant, int64, list, optional, required, text, textMap, type TextMap } from '../codec.js'
import type { CreateVolumeGroupSnapshotResponse__Output } from '../generated/csi/v1/CreateVolumeGroupSnapshotResponse.js'
import type { GetSnapshotResponse__Output } from '../generated/csi/v1/GetSnapshotResponse.js'
import type { ListSnapshotsResponse__Output } from '../generated/csi/v1/ListSnapshotsResponse.js'
import type { Snapshot__Output } from '../generated/csi/v1/Snapshot.js'
import type { VolumeGroupSnapshot__Output } from '../generated/csi/v1/VolumeGroupSnapshot.js'
import { request, response } from '../message.js'
import type { CsiRequest } from '../rpcs.js'
import {
  topology,
  topologyRequirement,
  type Page,
  type PageRequest,
  type Topology,
  type TopologyRequirement,
  type WithSecrets,
} from './shared.js'

export interface Snapshot {
  snapshotId: string
  sourceVolumeId: string
  /** Absent: not known. A volume made of it is at least this large. */
  sizeBytes?: bigint
  /** When it was taken, in Unix ms. */
  createdAt: number
  /** False: it is still being made ready, and no volume can be made of it. */
  readyToUse: boolean
  groupSnapshotId?: string
  /** Any of these places. Empty: from everywhere. */
  accessibleTopology: readonly Topology[]
}

/** Snapshots of several volumes at one point in time. */
export interface VolumeGroupSnapshot {
  groupSnapshotId: string
  snapshots: readonly Snapshot[]
  /** Unix ms. */
  createdAt: number
  readyToUse: boolean
}

export interface CreateSnapshotRequest extends WithSecrets {
  sourceVolumeId: string
  /** A second snapshot of this name is the first one. */
  name: string
  parameters?: TextMap | undefined
  /** For plugins with SNAPSHOT_ACCESSIBILITY_CONSTRAINTS. */
  accessibilityRequirements?: TopologyRequirement | undefined
}

export interface SnapshotRequest extends WithSecrets {
  snapshotId: string
}

export interface SnapshotResponse {
  snapshot: Snapshot
}

export interface ListSnapshotsRequest extends PageRequest, WithSecrets {
  sourceVolumeId?: string | undefined
  snapshotId?: string | undefined
}

export type ListSnapshotsResponse = Page<SnapshotResponse>

export interface CreateVolumeGroupSnapshotRequest extends WithSecrets {
  name: string
  sourceVolumeIds: readonly string[]
  parameters?: TextMap | undefined
}

export interface VolumeGroupSnapshotRequest extends WithSecrets {
  groupSnapshotId: string
  /** Every snapshot of the group: some plugins know groups by them alone. */
  snapshotIds: readonly string[]
}

export interface VolumeGroupSnapshotResponse {
  groupSnapshot: VolumeGroupSnapshot
}

export const requests = {
  create: request<CreateSnapshotRequest, CsiRequest<'CreateSnapshot'>>({
    sourceVolumeId: required(text),
    name: required(text),
    secrets: textMap,
    parameters: textMap,
    accessibilityRequirements: topologyRequirement,
  }),
  snapshot: request<SnapshotRequest, CsiRequest<'DeleteSnapshot'>>({ snapshotId: required(text), secrets: textMap }),
  list: request<ListSnapshotsRequest, CsiRequest<'ListSnapshots'>>({
    maxEntries: count,
    startingToken: text,
    sourceVolumeId: text,
    snapshotId: text,
    secrets: textMap,
  }),
  createGroup: request<CreateVolumeGroupSnapshotRequest, CsiRequest<'CreateVolumeGroupSnapshot'>>({
    name: required(text),
    sourceVolumeIds: required(list(required(text))),
    secrets: textMap,
    parameters: textMap,
  }),
  group: request<VolumeGroupSnapshotRequest, CsiRequest<'GetVolumeGroupSnapshot'>>({
    groupSnapshotId: required(text),
    snapshotIds: required(list(required(text))),
    secrets: textMap,
  }),
}

const snapshot = response<Snapshot, Snapshot__Output>({
  snapshotId: required(text),
  sourceVolumeId: required(text),
  sizeBytes: optional(int64),
  createdAt: required(instant),
  readyToUse: flag,
  groupSnapshotId: optional(text),
  accessibleTopology: list(topology),
})

const group = response<VolumeGroupSnapshot, VolumeGroupSnapshot__Output>({
  groupSnapshotId: required(text),
  snapshots: list(snapshot),
  createdAt: required(instant),
  readyToUse: flag,
})

export const responses = {
  snapshot: response<SnapshotResponse, GetSnapshotResponse__Output>({ snapshot: required(snapshot) }),
  list: response<ListSnapshotsResponse, ListSnapshotsResponse__Output>({
    entries: list(
      response<SnapshotResponse, ListSnapshotsResponse__Output['entries'][number]>({ snapshot: required(snapshot) }),
    ),
    nextToken: optional(text),
  }),
  group: response<VolumeGroupSnapshotResponse, CreateVolumeGroupSnapshotResponse__Output>({
    groupSnapshot: required(group),
  }),
}
