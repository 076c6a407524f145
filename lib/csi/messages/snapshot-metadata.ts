import { count, enumName, int64, list, required, text, textMap, type KnownName } from '../codec.js'
import type { BlockMetadata__Output } from '../generated/csi/v1/BlockMetadata.js'
import { BlockMetadataType } from '../generated/csi/v1/BlockMetadataType.js'
import type { GetMetadataAllocatedRequest as WireAllocated } from '../generated/csi/v1/GetMetadataAllocatedRequest.js'
import type { GetMetadataAllocatedResponse__Output } from '../generated/csi/v1/GetMetadataAllocatedResponse.js'
import type { GetMetadataDeltaRequest as WireDelta } from '../generated/csi/v1/GetMetadataDeltaRequest.js'
import { request, response } from '../message.js'
import type { WithSecrets } from './shared.js'

interface MetadataRequest extends WithSecrets {
  /** Where to begin; what is before it is left out. Default: 0n. */
  startingByteOffset?: bigint | undefined
  /** Most blocks of a message. Default: the plugin chooses. */
  maxResults?: number | undefined
}

export interface GetMetadataAllocatedRequest extends MetadataRequest {
  snapshotId: string
}

export interface GetMetadataDeltaRequest extends MetadataRequest {
  baseSnapshotId: string
  targetSnapshotId: string
}

export interface BlockMetadata {
  byteOffset: bigint
  sizeBytes: bigint
}

/** One message of a stream of blocks. */
export interface SnapshotMetadata {
  /** FIXED_LENGTH: blocks of one size; VARIABLE_LENGTH: extents. The same in every message. */
  blockMetadataType: KnownName<keyof typeof BlockMetadataType> | 'UNKNOWN' | number
  volumeCapacityBytes: bigint
  /** In the order of their offsets. */
  blockMetadata: readonly BlockMetadata[]
}

export const requests = {
  allocated: request<GetMetadataAllocatedRequest, WireAllocated>({
    snapshotId: required(text),
    startingByteOffset: int64,
    maxResults: count,
    secrets: textMap,
  }),
  delta: request<GetMetadataDeltaRequest, WireDelta>({
    baseSnapshotId: required(text),
    targetSnapshotId: required(text),
    startingByteOffset: int64,
    maxResults: count,
    secrets: textMap,
  }),
}

export const snapshotMetadata = response<SnapshotMetadata, GetMetadataAllocatedResponse__Output>({
  blockMetadataType: enumName(BlockMetadataType),
  volumeCapacityBytes: int64,
  blockMetadata: list(response<BlockMetadata, BlockMetadata__Output>({ byteOffset: int64, sizeBytes: int64 })),
})
