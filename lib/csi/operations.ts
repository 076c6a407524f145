import type { Capabilities } from '../plugin/fingerprint.js'
import { madeOfSource, takenOfVolume } from './agreement.js'
import type { Reads, Writes } from './codec.js'
import { nothing, type NoFields } from './message.js'
import * as controller from './messages/controller.js'
import { storageHealth, type NodeGetStorageHealthResponse } from './messages/health.js'
import * as identity from './messages/identity.js'
import * as node from './messages/node.js'
import type { PageRequest, VolumeRequest, WithSecrets } from './messages/shared.js'
import * as metadata from './messages/snapshot-metadata.js'
import * as snapshot from './messages/snapshot.js'
import { need, needsOfUse, type Needs } from './needs.js'
import type { AnyCsiRpc, WireRequest, WireResponse } from './rpcs.js'

/** What each call takes, and what it answers. */
export interface CsiOperations {
  /** Who the plugin is. */
  GetPluginInfo: [NoFields, identity.GetPluginInfoResponse]
  /** What the driver has behind all of its sockets together. */
  GetPluginCapabilities: [NoFields, identity.GetPluginCapabilitiesResponse]
  /** Whether the plugin is healthy, and whether it has finished starting. */
  Probe: [NoFields, identity.ProbeResponse]
  /** Makes a volume; one that is there under the same name is given back. */
  CreateVolume: [controller.CreateVolumeRequest, controller.CreateVolumeResponse]
  /** Deletes a volume, if it is there. */
  DeleteVolume: [VolumeRequest, undefined]
  /** Attaches a volume to a node. */
  ControllerPublishVolume: [controller.ControllerPublishVolumeRequest, controller.ControllerPublishVolumeResponse]
  /** Detaches a volume from a node, or, without `nodeId`, from all. */
  ControllerUnpublishVolume: [controller.ControllerUnpublishVolumeRequest, undefined]
  /** Whether a volume could be used in the given ways. */
  ValidateVolumeCapabilities: [
    controller.ValidateVolumeCapabilitiesRequest,
    controller.ValidateVolumeCapabilitiesResponse,
  ]
  /** One page of the volumes; `allVolumes` goes through all. */
  ListVolumes: [PageRequest, controller.ListVolumesResponse]
  /** How much room is left for new volumes. */
  GetCapacity: [controller.GetCapacityRequest, controller.GetCapacityResponse]
  /** Which of the controller's calls may be made. */
  ControllerGetCapabilities: [NoFields, Capabilities]
  /** Takes a snapshot; one that is there under the same name is given back. */
  CreateSnapshot: [snapshot.CreateSnapshotRequest, snapshot.SnapshotResponse]
  /** Deletes a snapshot, if it is there. */
  DeleteSnapshot: [snapshot.SnapshotRequest, undefined]
  /** One page of the snapshots; `allSnapshots` goes through all. */
  ListSnapshots: [snapshot.ListSnapshotsRequest, snapshot.ListSnapshotsResponse]
  /** One snapshot. */
  GetSnapshot: [snapshot.SnapshotRequest, snapshot.SnapshotResponse]
  /** Grows a volume; its answer says whether the node has to do its part. */
  ControllerExpandVolume: [controller.ControllerExpandVolumeRequest, controller.ControllerExpandVolumeResponse]
  /** One volume, with what is known of its state. */
  ControllerGetVolume: [controller.ControllerGetVolumeRequest, controller.ListedVolume]
  /** Changes the mutable parameters of a volume. */
  ControllerModifyVolume: [controller.ControllerModifyVolumeRequest, undefined]
  /** How a volume is, seen from the storage. */
  ControllerGetVolumeHealth: [VolumeRequest, controller.VolumeHealthResponse]
  /** One page of the health of volumes; `allVolumeHealth` goes through all. */
  ControllerListVolumeHealth: [
    controller.ControllerListVolumeHealthRequest,
    controller.ControllerListVolumeHealthResponse,
  ]
  /** Which of the group controller's calls may be made. */
  GroupControllerGetCapabilities: [NoFields, Capabilities]
  /** Takes snapshots of several volumes at one point in time. */
  CreateVolumeGroupSnapshot: [snapshot.CreateVolumeGroupSnapshotRequest, snapshot.VolumeGroupSnapshotResponse]
  /** Deletes a group of snapshots with its snapshots, if it is there. */
  DeleteVolumeGroupSnapshot: [snapshot.VolumeGroupSnapshotRequest, undefined]
  /** One group of snapshots. */
  GetVolumeGroupSnapshot: [snapshot.VolumeGroupSnapshotRequest, snapshot.VolumeGroupSnapshotResponse]
  /** The blocks of a snapshot that are in use. */
  GetMetadataAllocated: [metadata.GetMetadataAllocatedRequest, metadata.SnapshotMetadata]
  /** The blocks that differ between two snapshots of one volume. */
  GetMetadataDelta: [metadata.GetMetadataDeltaRequest, metadata.SnapshotMetadata]
  /** Makes a volume ready on the node, once, however many will use it. */
  NodeStageVolume: [node.NodeStageVolumeRequest, undefined]
  /** Undoes it, after the last use. */
  NodeUnstageVolume: [node.NodeUnstageVolumeRequest, undefined]
  /** Puts a volume at one place for one user of it. */
  NodePublishVolume: [node.NodePublishVolumeRequest, undefined]
  /** Takes it away from there. */
  NodeUnpublishVolume: [node.NodeUnpublishVolumeRequest, undefined]
  /** How full a volume is. */
  NodeGetVolumeStats: [node.NodeGetVolumeStatsRequest, node.NodeGetVolumeStatsResponse]
  /** Lets a volume's file system grow after the volume has. */
  NodeExpandVolume: [node.NodeExpandVolumeRequest, node.NodeExpandVolumeResponse]
  /** Which of the node's calls may be made. */
  NodeGetCapabilities: [NoFields, Capabilities]
  /** The node's id in the words of the storage system, its limit and its place. */
  NodeGetInfo: [NoFields, node.NodeGetInfoResponse]
  /** How a volume is, seen from the node; also one that could not be staged or published. */
  NodeGetVolumeHealth: [node.NodeGetVolumeHealthRequest, controller.VolumeHealthResponse]
  /** What of the storage this node cannot reach well. */
  NodeGetStorageHealth: [WithSecrets, NodeGetStorageHealthResponse]
}

/** How a call is made of what it takes, and its answer read. */
export interface Operation<Request, Response, WireRequest, WireResponse> {
  request: Writes<Request, WireRequest>
  response: Reads<WireResponse, Response>
  /** What the plugin has to advertise for it. Default: nothing. */
  needs?: Needs | ((request: Request) => Needs)
  /** Fails with ERR_CSI_PROTOCOL where the answer is about something else than was asked for. Default: any answer will do. */
  agrees?: (request: Request, response: Response) => void
  /** Something is done, so that it may take long, and is not to be done twice at the same time. */
  changes?: true
}

type Operations = {
  readonly [Rpc in AnyCsiRpc]: Operation<
    CsiOperations[Rpc][0],
    CsiOperations[Rpc][1],
    WireRequest<Rpc>,
    WireResponse<Rpc>
  >
}

const creates = need('controller', 'CREATE_DELETE_VOLUME')
const clones = need('controller', 'CLONE_VOLUME')
const modifies = need('controller', 'MODIFY_VOLUME')
const attaches = need('controller', 'PUBLISH_UNPUBLISH_VOLUME')
const attachesReadonly = need('controller', 'PUBLISH_READONLY')
const takesSnapshots = need('controller', 'CREATE_DELETE_SNAPSHOT')
const tellsVolumeHealth = need('controller', 'GET_VOLUME_HEALTH', 'LIST_VOLUME_HEALTH') // who lists it, gives it
const takesGroups = need('groupController', 'CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT')
const tellsMetadata = need('plugin', 'SNAPSHOT_METADATA_SERVICE')
const placesVolumes = need('plugin', 'VOLUME_ACCESSIBILITY_CONSTRAINTS')
const placesSnapshots = need('plugin', 'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS')
const stages = need('node', 'STAGE_UNSTAGE_VOLUME')

const capabilities = { request: nothing, response: identity.rpcCapabilities }
const changes = true

/** Every call of CSI 1.13. */
export const operations: Operations = {
  GetPluginInfo: { request: nothing, response: identity.pluginInfo },
  GetPluginCapabilities: { request: nothing, response: identity.pluginCapabilities },
  Probe: { request: nothing, response: identity.probeAnswer },

  CreateVolume: {
    request: controller.requests.createVolume,
    response: controller.responses.createVolume,
    agrees: madeOfSource,
    needs: ({ volumeCapabilities, volumeContentSource, mutableParameters = {}, accessibilityRequirements }) => [
      creates,
      volumeContentSource?.kind === 'volume' && clones,
      Object.keys(mutableParameters).length > 0 && modifies,
      accessibilityRequirements !== undefined && placesVolumes,
      ...needsOfUse('controller', volumeCapabilities),
    ],
    changes,
  },
  DeleteVolume: { request: controller.requests.volume, response: nothing, needs: [creates], changes },
  ControllerPublishVolume: {
    request: controller.requests.publish,
    response: controller.responses.publish,
    needs: ({ readonly = false, volumeCapability }) => [
      attaches,
      readonly && attachesReadonly,
      ...needsOfUse('controller', [volumeCapability]),
    ],
    changes,
  },
  ControllerUnpublishVolume: {
    request: controller.requests.unpublish,
    response: nothing,
    needs: [attaches],
    changes,
  },
  // May ask of a plugin what it does not know: what it confirms tells.
  ValidateVolumeCapabilities: { request: controller.requests.validate, response: controller.responses.validate },
  ListVolumes: {
    request: controller.requests.page,
    response: controller.responses.volumes,
    needs: [need('controller', 'LIST_VOLUMES')],
  },
  GetCapacity: {
    request: controller.requests.capacity,
    response: controller.responses.capacity,
    needs: ({ volumeCapabilities = [], accessibleTopology }) => [
      need('controller', 'GET_CAPACITY'),
      accessibleTopology !== undefined && placesVolumes,
      ...needsOfUse('controller', volumeCapabilities),
    ],
  },
  ControllerGetCapabilities: capabilities,
  CreateSnapshot: {
    request: snapshot.requests.create,
    response: snapshot.responses.snapshot,
    agrees: takenOfVolume,
    needs: ({ accessibilityRequirements }) => [
      takesSnapshots,
      accessibilityRequirements !== undefined && placesSnapshots,
    ],
    changes,
  },
  DeleteSnapshot: { request: snapshot.requests.snapshot, response: nothing, needs: [takesSnapshots], changes },
  ListSnapshots: {
    request: snapshot.requests.list,
    response: snapshot.responses.list,
    needs: [need('controller', 'LIST_SNAPSHOTS')],
  },
  GetSnapshot: {
    request: snapshot.requests.snapshot,
    response: snapshot.responses.snapshot,
    needs: [need('controller', 'GET_SNAPSHOT')],
  },
  ControllerExpandVolume: {
    request: controller.requests.expand,
    response: controller.responses.expand,
    needs: ({ volumeCapability }) => [
      need('controller', 'EXPAND_VOLUME'),
      ...needsOfUse('controller', [volumeCapability]),
    ],
    changes,
  },
  ControllerGetVolume: {
    request: controller.requests.get,
    response: controller.responses.get,
    needs: [need('controller', 'GET_VOLUME')],
  },
  ControllerModifyVolume: { request: controller.requests.modify, response: nothing, needs: [modifies], changes },
  ControllerGetVolumeHealth: {
    request: controller.requests.volume,
    response: controller.responses.health,
    needs: [tellsVolumeHealth],
  },
  ControllerListVolumeHealth: {
    request: controller.requests.secretPage,
    response: controller.responses.healths,
    needs: [need('controller', 'LIST_VOLUME_HEALTH')],
  },

  GroupControllerGetCapabilities: capabilities,
  CreateVolumeGroupSnapshot: {
    request: snapshot.requests.createGroup,
    response: snapshot.responses.group,
    needs: [takesGroups],
    changes,
  },
  DeleteVolumeGroupSnapshot: { request: snapshot.requests.group, response: nothing, needs: [takesGroups], changes },
  GetVolumeGroupSnapshot: {
    request: snapshot.requests.group,
    response: snapshot.responses.group,
    needs: [takesGroups],
  },

  GetMetadataAllocated: {
    request: metadata.requests.allocated,
    response: metadata.snapshotMetadata,
    needs: [tellsMetadata],
  },
  GetMetadataDelta: { request: metadata.requests.delta, response: metadata.snapshotMetadata, needs: [tellsMetadata] },

  NodeStageVolume: {
    request: node.requests.stage,
    response: nothing,
    needs: ({ volumeCapability }) => [stages, ...needsOfUse('node', [volumeCapability])],
    changes,
  },
  NodeUnstageVolume: {
    request: node.requests.unstage,
    response: nothing,
    needs: [stages],
    changes,
  },
  NodePublishVolume: {
    request: node.requests.publish,
    response: nothing,
    needs: ({ volumeCapability }) => needsOfUse('node', [volumeCapability]),
    changes,
  },
  NodeUnpublishVolume: { request: node.requests.unpublish, response: nothing, changes },
  NodeGetVolumeStats: {
    request: node.requests.stats,
    response: node.responses.stats,
    needs: [need('node', 'GET_VOLUME_STATS')],
  },
  NodeExpandVolume: {
    request: node.requests.expand,
    response: node.responses.expand,
    needs: ({ volumeCapability }) => [need('node', 'EXPAND_VOLUME'), ...needsOfUse('node', [volumeCapability])],
    changes,
  },
  NodeGetCapabilities: capabilities,
  NodeGetInfo: { request: nothing, response: node.responses.info },
  NodeGetVolumeHealth: {
    request: node.requests.health,
    response: controller.responses.health,
    needs: [need('node', 'GET_VOLUME_HEALTH')],
  },
  NodeGetStorageHealth: {
    request: node.requests.storageHealth,
    response: storageHealth,
    needs: [need('node', 'GET_STORAGE_HEALTH')],
  },
}
