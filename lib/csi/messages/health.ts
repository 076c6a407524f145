import { enumName, list, optional, required, text, type KnownName, type Reads } from '../codec.js'
import type {
  NodeGetStorageHealthResponse__Output,
  _csi_v1_NodeGetStorageHealthResponse_StorageBackendHealth__Output,
} from '../generated/csi/v1/NodeGetStorageHealthResponse.js'
import { StorageHealthErrorType } from '../generated/csi/v1/StorageHealthErrorType.js'
import type { VolumeCondition__Output } from '../generated/csi/v1/VolumeCondition.js'
import type { VolumeHealth__Output } from '../generated/csi/v1/VolumeHealth.js'
import { VolumeHealthErrorType } from '../generated/csi/v1/VolumeHealthErrorType.js'
import { response } from '../message.js'
import { volumeCapability, type ReportedVolumeCapability } from './volume-capability.js'

/** What is wrong with a volume. `ABNORMAL` is all that plugins of CSI 1.12 and before can say. */
export interface VolumeProblem {
  /** A number is of a later version of CSI: it says nothing about `healthy`. */
  status: KnownName<keyof typeof VolumeHealthErrorType> | 'ABNORMAL' | 'UNKNOWN' | number
  /** In one word of camel case. */
  reason?: string
  message?: string
}

/** How a volume is: from the VolumeHealth of CSI 1.13, or the VolumeCondition of plugins before it. */
export interface VolumeHealth {
  /** None of the problems is of a known sort. */
  healthy: boolean
  problems: readonly VolumeProblem[]
}

/** The health of a volume that is named. */
export interface VolumeHealthOf extends VolumeHealth {
  volumeId: string
}

export interface StorageProblem {
  status: KnownName<keyof typeof StorageHealthErrorType> | 'UNKNOWN' | number
  reason?: string
  message?: string
  /** Which sort of volume is affected. Absent: all. */
  volumeCapability?: ReportedVolumeCapability
}

/** What of the storage cannot be reached well from a node. */
export interface NodeGetStorageHealthResponse {
  /** Empty: nothing is wrong. */
  backendHealth: readonly StorageProblem[]
}

/** Absent where the plugin tells no condition. */
export const health: Reads<VolumeCondition__Output | null, VolumeHealth | undefined> = {
  read: (wire) => {
    if (!wire) return undefined
    const problem: VolumeProblem = { status: 'ABNORMAL', ...(wire.message && { message: wire.message }) }
    return { healthy: !wire.abnormal, problems: wire.abnormal ? [problem] : [] }
  },
}

const problem = response<VolumeProblem, VolumeHealth__Output['health_statuses'][number]>({
  status: enumName(VolumeHealthErrorType),
  reason: optional(text),
  message: optional(text),
})
const problems = list(problem)
const volumeId = required(text)

export const volumeHealth: Reads<VolumeHealth__Output, VolumeHealthOf> = {
  read: (wire, field) => {
    const found = problems.read(wire.health_statuses, `${field}.problems`)
    return {
      volumeId: volumeId.read(wire.volume_id, `${field}.volumeId`),
      healthy: found.every(({ status }) => status === 'UNKNOWN' || typeof status === 'number'),
      problems: found,
    }
  },
}

type StorageBackendHealth = _csi_v1_NodeGetStorageHealthResponse_StorageBackendHealth__Output

export const storageHealth = response<NodeGetStorageHealthResponse, NodeGetStorageHealthResponse__Output>({
  backendHealth: list(
    response<StorageProblem, StorageBackendHealth>({
      status: enumName(StorageHealthErrorType),
      reason: optional(text),
      message: optional(text),
      volumeCapability: optional(volumeCapability),
    }),
  ),
})
