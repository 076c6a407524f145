import type { Capabilities } from '../plugin/fingerprint.js'
import type { Reads, Writes } from './codec.js'
import type { _csi_v1_ControllerServiceCapability_RPC_Type as ControllerCapability } from './generated/csi/v1/ControllerServiceCapability.js'
import type { _csi_v1_NodeServiceCapability_RPC_Type as NodeCapability } from './generated/csi/v1/NodeServiceCapability.js'
import { nothing, type NoFields } from './message.js'
import * as controller from './messages/controller.js'
import { storageHealth, type NodeGetStorageHealthResponse } from './messages/health.js'
import * as identity from './messages/identity.js'
import * as node from './messages/node.js'
import type { PageRequest, VolumeRequest, WithSecrets } from './messages/shared.js'
import * as metadata from './messages/snapshot-metadata.js'
import * as snapshot from './messages/snapshot.js'
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

/** Which of a plugin's lists a capability is in. */
export type CapabilityList = 'plugin' | 'controller' | 'groupController' | 'node'

/** A capability a call needs: any one of the names is enough. */
export interface Need {
  list: CapabilityList
  anyOf: readonly string[]
}

/** How a call is made of what it takes, and its answer read. */
export interface Operation<Request, Response, WireRequest, WireResponse> {
  request: Writes<Request, WireRequest>
  response: Reads<WireResponse, Response>
  /** What the plugin has to advertise for it. Default: nothing. */
  needs?: (request: Request) => readonly Need[]
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

const byController = (...anyOf: (keyof typeof ControllerCapability)[]): (() => readonly Need[]) => {
  const needs = [{ list: 'controller', anyOf }] as const
  return () => needs
}
const byNode = (...anyOf: (keyof typeof NodeCapability)[]): (() => readonly Need[]) => {
  const needs = [{ list: 'node', anyOf }] as const
  return () => needs
}
const byGroup = (): readonly Need[] => [{ list: 'groupController', anyOf: ['CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT'] }]
const byPlugin = (): readonly Need[] => [{ list: 'plugin', anyOf: ['SNAPSHOT_METADATA_SERVICE'] }]

const creates = byController('CREATE_DELETE_VOLUME')
const clones = byController('CLONE_VOLUME')
const modifies = byController('MODIFY_VOLUME')
const attaches = byController('PUBLISH_UNPUBLISH_VOLUME')
const attachesReadonly = byController('PUBLISH_READONLY')
const snapshots = byController('CREATE_DELETE_SNAPSHOT')
const tellsVolumeHealth = byController('GET_VOLUME_HEALTH', 'LIST_VOLUME_HEALTH') // who lists it, gives it

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
    needs: ({ volumeContentSource, mutableParameters = {} }) => [
      ...creates(),
      ...(volumeContentSource?.kind === 'volume' ? clones() : []),
      ...(Object.keys(mutableParameters).length > 0 ? modifies() : []),
    ],
    changes,
  },
  DeleteVolume: { request: controller.requests.volume, response: nothing, needs: creates, changes },
  ControllerPublishVolume: {
    request: controller.requests.publish,
    response: controller.responses.publish,
    needs: ({ readonly = false }) => [...attaches(), ...(readonly ? attachesReadonly() : [])],
    changes,
  },
  ControllerUnpublishVolume: {
    request: controller.requests.unpublish,
    response: nothing,
    needs: attaches,
    changes,
  },
  ValidateVolumeCapabilities: { request: controller.requests.validate, response: controller.responses.validate },
  ListVolumes: {
    request: controller.requests.page,
    response: controller.responses.volumes,
    needs: byController('LIST_VOLUMES'),
  },
  GetCapacity: {
    request: controller.requests.capacity,
    response: controller.responses.capacity,
    needs: byController('GET_CAPACITY'),
  },
  ControllerGetCapabilities: capabilities,
  CreateSnapshot: {
    request: snapshot.requests.create,
    response: snapshot.responses.snapshot,
    needs: snapshots,
    changes,
  },
  DeleteSnapshot: { request: snapshot.requests.snapshot, response: nothing, needs: snapshots, changes },
  ListSnapshots: {
    request: snapshot.requests.list,
    response: snapshot.responses.list,
    needs: byController('LIST_SNAPSHOTS'),
  },
  GetSnapshot: {
    request: snapshot.requests.snapshot,
    response: snapshot.responses.snapshot,
    needs: byController('GET_SNAPSHOT'),
  },
  ControllerExpandVolume: {
    request: controller.requests.expand,
    response: controller.responses.expand,
    needs: byController('EXPAND_VOLUME'),
    changes,
  },
  ControllerGetVolume: {
    request: controller.requests.get,
    response: controller.responses.get,
    needs: byController('GET_VOLUME'),
  },
  ControllerModifyVolume: { request: controller.requests.modify, response: nothing, needs: modifies, changes },
  ControllerGetVolumeHealth: {
    request: controller.requests.volume,
    response: controller.responses.health,
    needs: tellsVolumeHealth,
  },
  ControllerListVolumeHealth: {
    request: controller.requests.secretPage,
    response: controller.responses.healths,
    needs: byController('LIST_VOLUME_HEALTH'),
  },

  GroupControllerGetCapabilities: capabilities,
  CreateVolumeGroupSnapshot: {
    request: snapshot.requests.createGroup,
    response: snapshot.responses.group,
    needs: byGroup,
    changes,
  },
  DeleteVolumeGroupSnapshot: { request: snapshot.requests.group, response: nothing, needs: byGroup, changes },
  GetVolumeGroupSnapshot: { request: snapshot.requests.group, response: snapshot.responses.group, needs: byGroup },

  GetMetadataAllocated: {
    request: metadata.requests.allocated,
    response: metadata.snapshotMetadata,
    needs: byPlugin,
  },
  GetMetadataDelta: { request: metadata.requests.delta, response: metadata.snapshotMetadata, needs: byPlugin },

  NodeStageVolume: {
    request: node.requests.stage,
    response: nothing,
    needs: byNode('STAGE_UNSTAGE_VOLUME'),
    changes,
  },
  NodeUnstageVolume: {
    request: node.requests.unstage,
    response: nothing,
    needs: byNode('STAGE_UNSTAGE_VOLUME'),
    changes,
  },
  NodePublishVolume: { request: node.requests.publish, response: nothing, changes },
  NodeUnpublishVolume: { request: node.requests.unpublish, response: nothing, changes },
  NodeGetVolumeStats: {
    request: node.requests.stats,
    response: node.responses.stats,
    needs: byNode('GET_VOLUME_STATS'),
  },
  NodeExpandVolume: {
    request: node.requests.expand,
    response: node.responses.expand,
    needs: byNode('EXPAND_VOLUME'),
    changes,
  },
  NodeGetCapabilities: capabilities,
  NodeGetInfo: { request: nothing, response: node.responses.info },
  NodeGetVolumeHealth: {
    request: node.requests.health,
    response: controller.responses.health,
    needs: byNode('GET_VOLUME_HEALTH'),
  },
  NodeGetStorageHealth: {
    request: node.requests.storageHealth,
    response: storageHealth,
    needs: byNode('GET_STORAGE_HEALTH'),
  },
}
