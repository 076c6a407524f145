import {
  count,
  flag,
  int64,
  list,
  optional,
  required,
  text,
  textMap,
  wrapped,
  type Reads,
  type TextMap,
} from '../codec.js'
import type { ControllerExpandVolumeResponse__Output } from '../generated/csi/v1/ControllerExpandVolumeResponse.js'
import type { ControllerGetVolumeHealthResponse__Output } from '../generated/csi/v1/ControllerGetVolumeHealthResponse.js'
import type { ControllerGetVolumeResponse__Output } from '../generated/csi/v1/ControllerGetVolumeResponse.js'
import type { ControllerListVolumeHealthResponse__Output } from '../generated/csi/v1/ControllerListVolumeHealthResponse.js'
import type { ControllerPublishVolumeResponse__Output } from '../generated/csi/v1/ControllerPublishVolumeResponse.js'
import type { CreateVolumeResponse__Output } from '../generated/csi/v1/CreateVolumeResponse.js'
import type { GetCapacityResponse__Output } from '../generated/csi/v1/GetCapacityResponse.js'
import type { ListVolumesResponse__Output } from '../generated/csi/v1/ListVolumesResponse.js'
import type { ValidateVolumeCapabilitiesResponse__Output } from '../generated/csi/v1/ValidateVolumeCapabilitiesResponse.js'
import type { Volume__Output } from '../generated/csi/v1/Volume.js'
import { request, response } from '../message.js'
import type { CsiRequest } from '../rpcs.js'
import { health, volumeHealth, type VolumeHealth, type VolumeHealthOf } from './health.js'
import {
  capacityRange,
  topology,
  topologyRequirement,
  volumeContentSource,
  type CapacityRange,
  type Page,
  type PageRequest,
  type Topology,
  type TopologyRequirement,
  type VolumeContentSource,
  type VolumeRequest,
  type WithSecrets,
} from './shared.js'
import { volumeCapability, type ReportedVolumeCapability, type VolumeCapability } from './volume-capability.js'

/** A volume as its plugin knows it. */
export interface Volume {
  volumeId: string
  /** Absent: not known. */
  capacityBytes?: bigint
  /** To be handed back with every later call about the volume. */
  volumeContext: TextMap
  contentSource?: VolumeContentSource
  /** Any of these places. Empty: from everywhere. */
  accessibleTopology: readonly Topology[]
}

export interface CreateVolumeRequest extends WithSecrets {
  /** A second volume of this name is the first one. */
  name: string
  capacityRange?: CapacityRange | undefined
  /** At least one; the volume can be used in any of these ways. */
  volumeCapabilities: readonly VolumeCapability[]
  parameters?: TextMap | undefined
  /** For plugins with MODIFY_VOLUME. */
  mutableParameters?: TextMap | undefined
  /** A volume as source is for plugins with CLONE_VOLUME. */
  volumeContentSource?: VolumeContentSource | undefined
  /** For plugins with VOLUME_ACCESSIBILITY_CONSTRAINTS. */
  accessibilityRequirements?: TopologyRequirement | undefined
}

export interface CreateVolumeResponse {
  volume: Volume
}

export interface ControllerPublishVolumeRequest extends VolumeRequest {
  nodeId: string
  volumeCapability: VolumeCapability
  /** For plugins with PUBLISH_READONLY. Default: false. */
  readonly?: boolean | undefined
  volumeContext?: TextMap | undefined
}

export interface ControllerPublishVolumeResponse {
  /** To be handed to the calls on the node. */
  publishContext: TextMap
}

export interface ControllerUnpublishVolumeRequest extends VolumeRequest {
  /** Left out: from every node. */
  nodeId?: string | undefined
}

export interface ValidateVolumeCapabilitiesRequest extends VolumeRequest {
  volumeCapabilities: readonly VolumeCapability[]
  volumeContext?: TextMap | undefined
  parameters?: TextMap | undefined
  mutableParameters?: TextMap | undefined
}

export interface ValidateVolumeCapabilitiesResponse {
  /** What the volume can do. Absent: not what was asked, and `message` may say why. */
  confirmed?: {
    volumeContext: TextMap
    volumeCapabilities: readonly ReportedVolumeCapability[]
    parameters: TextMap
    mutableParameters: TextMap
  }
  message?: string
}

export interface VolumeStatus {
  publishedNodeIds: readonly string[]
  /** Absent: the plugin does not say. */
  health?: VolumeHealth
}

export interface ListedVolume {
  volume: Volume
  status?: VolumeStatus
}

export type ListVolumesResponse = Page<ListedVolume>

export interface GetCapacityRequest {
  volumeCapabilities?: readonly VolumeCapability[] | undefined
  parameters?: TextMap | undefined
  /** For plugins with VOLUME_ACCESSIBILITY_CONSTRAINTS. */
  accessibleTopology?: Topology | undefined
}

export interface GetCapacityResponse {
  availableBytes: bigint
  /** Absent: no limit is known. */
  maximumVolumeBytes?: bigint
  minimumVolumeBytes?: bigint
}

export interface ControllerExpandVolumeRequest extends VolumeRequest {
  capacityRange: CapacityRange
  volumeCapability?: VolumeCapability | undefined
}

export interface ControllerExpandVolumeResponse {
  /** Absent: not known. */
  capacityBytes?: bigint
  /** NodeExpandVolume is still to be called. */
  nodeExpansionRequired: boolean
}

export interface ControllerModifyVolumeRequest extends VolumeRequest {
  mutableParameters: TextMap
}

export interface ControllerGetVolumeRequest {
  volumeId: string
}

export interface ControllerListVolumeHealthRequest extends PageRequest, WithSecrets {}

/** Volumes without a problem need not be in it. */
export type ControllerListVolumeHealthResponse = Page<VolumeHealthOf>

export interface VolumeHealthResponse {
  volumeHealth: VolumeHealthOf
}

const filled = {
  write: (value: string | undefined, field: string) =>
    value === undefined ? value : required(text).write(value, field),
}

export const requests = {
  createVolume: request<CreateVolumeRequest, CsiRequest<'CreateVolume'>>({
    name: required(text),
    capacityRange,
    volumeCapabilities: required(list(volumeCapability)),
    parameters: textMap,
    mutableParameters: textMap,
    secrets: textMap,
    volumeContentSource,
    accessibilityRequirements: topologyRequirement,
  }),
  volume: request<VolumeRequest, CsiRequest<'DeleteVolume'>>({ volumeId: required(text), secrets: textMap }),
  publish: request<ControllerPublishVolumeRequest, CsiRequest<'ControllerPublishVolume'>>({
    volumeId: required(text),
    nodeId: required(text),
    volumeCapability: required(volumeCapability),
    readonly: flag,
    secrets: textMap,
    volumeContext: textMap,
  }),
  unpublish: request<ControllerUnpublishVolumeRequest, CsiRequest<'ControllerUnpublishVolume'>>({
    volumeId: required(text),
    nodeId: filled, // an empty one by mistake would detach the volume everywhere
    secrets: textMap,
  }),
  validate: request<ValidateVolumeCapabilitiesRequest, CsiRequest<'ValidateVolumeCapabilities'>>({
    volumeId: required(text),
    volumeContext: textMap,
    volumeCapabilities: required(list(volumeCapability)),
    parameters: textMap,
    mutableParameters: textMap,
    secrets: textMap,
  }),
  page: request<PageRequest, CsiRequest<'ListVolumes'>>({ maxEntries: count, startingToken: text }),
  secretPage: request<ControllerListVolumeHealthRequest, CsiRequest<'ControllerListVolumeHealth'>>({
    maxEntries: count,
    startingToken: text,
    secrets: textMap,
  }),
  capacity: request<GetCapacityRequest, CsiRequest<'GetCapacity'>>({
    volumeCapabilities: list(volumeCapability),
    parameters: textMap,
    accessibleTopology: topology,
  }),
  expand: request<ControllerExpandVolumeRequest, CsiRequest<'ControllerExpandVolume'>>({
    volumeId: required(text),
    capacityRange: required(capacityRange),
    secrets: textMap,
    volumeCapability,
  }),
  modify: request<ControllerModifyVolumeRequest, CsiRequest<'ControllerModifyVolume'>>({
    volumeId: required(text),
    secrets: textMap,
    mutableParameters: required(textMap),
  }),
  get: request<ControllerGetVolumeRequest, CsiRequest<'ControllerGetVolume'>>({ volumeId: required(text) }),
}

const volume = response<Volume, Volume__Output>({
  volumeId: required(text),
  capacityBytes: optional(int64),
  volumeContext: textMap,
  contentSource: volumeContentSource,
  accessibleTopology: list(topology),
})

/** Drivers were seen to list one node without a name. */
const nodeIds: Reads<readonly string[], readonly string[]> = { read: (wire) => wire.filter((id) => id !== '') }

const status = response<VolumeStatus, NonNullable<ControllerGetVolumeResponse__Output['status']>>({
  publishedNodeIds: nodeIds,
  health,
})

type Confirmed = NonNullable<ValidateVolumeCapabilitiesResponse['confirmed']>

export const responses = {
  createVolume: response<CreateVolumeResponse, CreateVolumeResponse__Output>({ volume: required(volume) }),
  publish: response<ControllerPublishVolumeResponse, ControllerPublishVolumeResponse__Output>({
    publishContext: textMap,
  }),
  validate: response<ValidateVolumeCapabilitiesResponse, ValidateVolumeCapabilitiesResponse__Output>({
    confirmed: optional(
      response<Confirmed, NonNullable<ValidateVolumeCapabilitiesResponse__Output['confirmed']>>({
        volumeContext: textMap,
        volumeCapabilities: list(volumeCapability),
        parameters: textMap,
        mutableParameters: textMap,
      }),
    ),
    message: optional(text),
  }),
  volumes: response<ListVolumesResponse, ListVolumesResponse__Output>({
    entries: list(
      response<ListedVolume, ListVolumesResponse__Output['entries'][number]>({
        volume: required(volume),
        status: optional(status),
      }),
    ),
    nextToken: optional(text),
  }),
  capacity: response<GetCapacityResponse, GetCapacityResponse__Output>({
    availableBytes: int64,
    maximumVolumeBytes: wrapped(int64),
    minimumVolumeBytes: wrapped(int64),
  }),
  expand: response<ControllerExpandVolumeResponse, ControllerExpandVolumeResponse__Output>({
    capacityBytes: optional(int64),
    nodeExpansionRequired: flag,
  }),
  get: response<ListedVolume, ControllerGetVolumeResponse__Output>({
    volume: required(volume),
    status: optional(status),
  }),
  health: response<VolumeHealthResponse, ControllerGetVolumeHealthResponse__Output>({
    volumeHealth: required(volumeHealth),
  }),
  healths: response<ControllerListVolumeHealthResponse, ControllerListVolumeHealthResponse__Output>({
    entries: list(volumeHealth),
    nextToken: optional(text),
  }),
}
