/** What the calls of CSI take and answer. */
export type { TextMap } from '../codec.js'
export type { NoFields } from '../message.js'
export type {
  ControllerExpandVolumeRequest,
  ControllerExpandVolumeResponse,
  ControllerGetVolumeRequest,
  ControllerListVolumeHealthRequest,
  ControllerListVolumeHealthResponse,
  ControllerModifyVolumeRequest,
  ControllerPublishVolumeRequest,
  ControllerPublishVolumeResponse,
  ControllerUnpublishVolumeRequest,
  CreateVolumeRequest,
  CreateVolumeResponse,
  GetCapacityRequest,
  GetCapacityResponse,
  ListVolumesResponse,
  ListedVolume,
  ValidateVolumeCapabilitiesRequest,
  ValidateVolumeCapabilitiesResponse,
  Volume,
  VolumeHealthResponse,
  VolumeStatus,
} from './controller.js'
export type {
  NodeGetStorageHealthResponse,
  StorageProblem,
  VolumeHealth,
  VolumeHealthOf,
  VolumeProblem,
} from './health.js'
export type { GetPluginCapabilitiesResponse, GetPluginInfoResponse, ProbeResponse } from './identity.js'
export type {
  NodeExpandVolumeRequest,
  NodeExpandVolumeResponse,
  NodeGetInfoResponse,
  NodeGetVolumeHealthRequest,
  NodeGetVolumeStatsRequest,
  NodeGetVolumeStatsResponse,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
  VolumeUsage,
} from './node.js'
export type {
  CapacityRange,
  Page,
  PageRequest,
  Secrets,
  Topology,
  TopologyRequirement,
  VolumeContentSource,
  VolumeRequest,
  WithSecrets,
} from './shared.js'
export type {
  CreateSnapshotRequest,
  CreateVolumeGroupSnapshotRequest,
  ListSnapshotsRequest,
  ListSnapshotsResponse,
  Snapshot,
  SnapshotRequest,
  SnapshotResponse,
  VolumeGroupSnapshot,
  VolumeGroupSnapshotRequest,
  VolumeGroupSnapshotResponse,
} from './snapshot.js'
export type {
  BlockMetadata,
  GetMetadataAllocatedRequest,
  GetMetadataDeltaRequest,
  SnapshotMetadata,
} from './snapshot-metadata.js'
export type { AccessMode, MountAccess, ReportedVolumeCapability, VolumeCapability } from './volume-capability.js'
