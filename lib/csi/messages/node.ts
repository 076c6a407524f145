import {
  enumName,
  flag,
  int64,
  list,
  optional,
  path,
  required,
  text,
  textMap,
  type KnownName,
  type Reads,
  type TextMap,
} from '../codec.js'
import type { NodeExpandVolumeResponse__Output } from '../generated/csi/v1/NodeExpandVolumeResponse.js'
import type { NodeGetInfoResponse__Output } from '../generated/csi/v1/NodeGetInfoResponse.js'
import type { NodeGetVolumeStatsResponse__Output } from '../generated/csi/v1/NodeGetVolumeStatsResponse.js'
import { _csi_v1_VolumeUsage_Unit as units, type VolumeUsage__Output } from '../generated/csi/v1/VolumeUsage.js'
import { request, response } from '../message.js'
import type { CsiRequest } from '../rpcs.js'
import { health, type VolumeHealth } from './health.js'
import {
  capacityRange,
  ownTopology,
  type CapacityRange,
  type Topology,
  type VolumeRequest,
  type WithSecrets,
} from './shared.js'
import { volumeCapability, type VolumeCapability } from './volume-capability.js'

/** Paths are absolute, as the plugin sees them. */
export interface NodeStageVolumeRequest extends VolumeRequest {
  stagingTargetPath: string
  volumeCapability: VolumeCapability
  publishContext?: TextMap | undefined
  volumeContext?: TextMap | undefined
}

export interface NodeUnstageVolumeRequest {
  volumeId: string
  stagingTargetPath: string
}

export interface NodePublishVolumeRequest extends VolumeRequest {
  targetPath: string
  /** Where the volume is staged; needed by plugins with STAGE_UNSTAGE_VOLUME. */
  stagingTargetPath?: string | undefined
  volumeCapability: VolumeCapability
  /** Default: false. */
  readonly?: boolean | undefined
  publishContext?: TextMap | undefined
  volumeContext?: TextMap | undefined
}

export interface NodeUnpublishVolumeRequest {
  volumeId: string
  targetPath: string
}

export interface NodeGetVolumeStatsRequest {
  volumeId: string
  /** Where it is published or staged. */
  volumePath: string
  stagingTargetPath?: string | undefined
}

/** How full a volume is; a plugin that does not know a figure says 0. */
export interface VolumeUsage {
  unit: KnownName<keyof typeof units> | 'UNKNOWN' | number
  available: bigint
  total: bigint
  used: bigint
}

export interface NodeGetVolumeStatsResponse {
  usage: readonly VolumeUsage[]
  /** Absent: the plugin does not say. */
  health?: VolumeHealth
}

export interface NodeExpandVolumeRequest extends VolumeRequest {
  volumePath: string
  stagingTargetPath?: string | undefined
  capacityRange?: CapacityRange | undefined
  volumeCapability?: VolumeCapability | undefined
}

export interface NodeExpandVolumeResponse {
  /** Absent: not known. */
  capacityBytes?: bigint
}

export interface NodeGetInfoResponse {
  /** The id the storage system knows this node by. */
  nodeId: string
  /** Absent: no limit. */
  maxVolumesPerNode?: bigint
  /** Absent: all volumes can be reached. */
  accessibleTopology?: Topology
}

export interface NodeGetVolumeHealthRequest {
  volumeId: string
  volumePublishPath?: string | undefined
  stagingTargetPath?: string | undefined
}

export const requests = {
  stage: request<NodeStageVolumeRequest, CsiRequest<'NodeStageVolume'>>({
    volumeId: required(text),
    publishContext: textMap,
    stagingTargetPath: required(path),
    volumeCapability: required(volumeCapability),
    secrets: textMap,
    volumeContext: textMap,
  }),
  unstage: request<NodeUnstageVolumeRequest, CsiRequest<'NodeUnstageVolume'>>({
    volumeId: required(text),
    stagingTargetPath: required(path),
  }),
  publish: request<NodePublishVolumeRequest, CsiRequest<'NodePublishVolume'>>({
    volumeId: required(text),
    publishContext: textMap,
    stagingTargetPath: path,
    targetPath: required(path),
    volumeCapability: required(volumeCapability),
    readonly: flag,
    secrets: textMap,
    volumeContext: textMap,
  }),
  unpublish: request<NodeUnpublishVolumeRequest, CsiRequest<'NodeUnpublishVolume'>>({
    volumeId: required(text),
    targetPath: required(path),
  }),
  stats: request<NodeGetVolumeStatsRequest, CsiRequest<'NodeGetVolumeStats'>>({
    volumeId: required(text),
    volumePath: required(path),
    stagingTargetPath: path,
  }),
  expand: request<NodeExpandVolumeRequest, CsiRequest<'NodeExpandVolume'>>({
    volumeId: required(text),
    volumePath: required(path),
    capacityRange,
    stagingTargetPath: path,
    volumeCapability,
    secrets: textMap,
  }),
  health: request<NodeGetVolumeHealthRequest, CsiRequest<'NodeGetVolumeHealth'>>({
    volumeId: required(text),
    volumePublishPath: path,
    stagingTargetPath: path,
  }),
  storageHealth: request<WithSecrets, CsiRequest<'NodeGetStorageHealth'>>({ secrets: textMap }),
}

/** 0 means no limit is known; negative ones were seen. */
const limit: Reads<string, bigint | undefined> = { read: (wire) => (BigInt(wire) > 0n ? BigInt(wire) : undefined) }

export const responses = {
  stats: response<NodeGetVolumeStatsResponse, NodeGetVolumeStatsResponse__Output>({
    usage: list(
      response<VolumeUsage, VolumeUsage__Output>({
        unit: enumName(units),
        available: int64,
        total: int64,
        used: int64,
      }),
    ),
    health,
  }),
  expand: response<NodeExpandVolumeResponse, NodeExpandVolumeResponse__Output>({ capacityBytes: optional(int64) }),
  info: response<NodeGetInfoResponse, NodeGetInfoResponse__Output>({
    nodeId: required(text),
    maxVolumesPerNode: limit,
    accessibleTopology: ownTopology,
  }),
}
