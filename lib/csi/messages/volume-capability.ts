import {
  enumName,
  list,
  optional,
  record,
  required,
  text,
  unfit,
  type KnownName,
  type Reads,
  type Writes,
} from '../codec.js'
import * as wire from '../generated/csi/v1/VolumeCapability.js'
import { nothing, request, response } from '../message.js'

const modes = wire._csi_v1_VolumeCapability_AccessMode_Mode

/**
 * How many nodes may write and read, and, where it is a single node, how many writers there may be on it: SINGLE_NODE_SINGLE_WRITER and
 * SINGLE_NODE_MULTI_WRITER are for plugins with the latter.
 */
export type AccessMode = KnownName<keyof typeof modes>

/** A file system, of the type the driver chooses unless one is given. */
export interface MountAccess {
  fsType?: string | undefined
  /** May hold credentials: never shown. */
  mountFlags?: readonly string[] | undefined
  /** The group that is to own the files; for plugins with VOLUME_MOUNT_GROUP. */
  volumeMountGroup?: string | undefined
}

/** One way to use a volume: as a block device or with a file system. */
export type VolumeCapability = { accessMode: AccessMode } & ({ kind: 'block' } | ({ kind: 'mount' } & MountAccess))

/** A way to use a volume as a plugin tells of it: drivers leave out its kind, its mode, or both. */
export type ReportedVolumeCapability = { accessMode: AccessMode | 'UNKNOWN' | number } & (
  { kind: 'block' | 'unknown' } | ({ kind: 'mount' } & MountAccess)
)

const accessMode = enumName(modes)
const mode = required(accessMode)
const mountFlag: Writes<string | undefined, string> & Reads<string, string> = {
  write: (value, field) => {
    if (typeof value !== 'string') throw unfit(field, 'must be a text')
    return value
  },
  read: text.read,
}
const mount = {
  ...request<MountAccess, wire._csi_v1_VolumeCapability_MountVolume>({
    fsType: text,
    mountFlags: list(mountFlag),
    volumeMountGroup: text,
  }),
  ...response<MountAccess, wire._csi_v1_VolumeCapability_MountVolume__Output>({
    fsType: optional(text),
    mountFlags: list(mountFlag),
    volumeMountGroup: optional(text),
  }),
}
export const volumeCapability: Writes<VolumeCapability | undefined, wire.VolumeCapability> &
  Reads<wire.VolumeCapability__Output, ReportedVolumeCapability> = {
  write: (value, field) => {
    if (value === undefined) return undefined
    record(value, field)
    const { kind, accessMode: given, ...access } = value as { kind: string; accessMode: AccessMode }
    const access_mode: wire._csi_v1_VolumeCapability_AccessMode = {
      mode: mode.write(given, `${field}.accessMode`) ?? 'UNKNOWN',
    }
    if (kind === 'block') return { block: nothing.write(access, field) ?? {}, access_mode }
    if (kind === 'mount') return { mount: mount.write(access, field) ?? {}, access_mode }
    throw unfit(`${field}.kind`, 'must be block or mount')
  },
  read: (wire, field) => {
    const mode = accessMode.read(wire.access_mode?.mode ?? 'UNKNOWN', field)
    if (wire.mount) return { kind: 'mount', accessMode: mode, ...mount.read(wire.mount, field) }
    return { kind: wire.block ? 'block' : 'unknown', accessMode: mode }
  },
}
