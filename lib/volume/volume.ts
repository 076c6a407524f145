import type { TextMap } from '../csi/codec.js'
import type { VolumeCapability } from '../csi/messages/volume-capability.js'

/** Which volume: a plugin's name, and the id that the plugin gave the volume. */
export interface VolumeRef {
  /** Name of the plugin, as in `CsiPluginConfig.id`. */
  plugin: string
  /** As CreateVolume gave it. */
  volumeId: string
  /** Whose books the volume is in; one volume in two namespaces is staged and published apart. Default: `default`. */
  namespace?: string | undefined
}

/** How an alloc uses a volume. `readonly` counts for this use alone; a volume can be in use read-only and read-write at once. */
export type VolumeAccess = VolumeCapability & { readonly?: boolean | undefined }

/** Which use of a volume. */
export interface MountRef extends VolumeRef {
  /** Who uses it: any text that the host knows its user by. */
  allocId: string
  /** Default: a mount with the access mode SINGLE_NODE_WRITER. What it says is compared by value. */
  access?: VolumeAccess | undefined
  /** Tells two uses of one volume by one alloc apart that are alike otherwise. Default: none. */
  mountName?: string | undefined
}

/** What `unmount` takes: also what `list` or `mount` gives. */
export interface UnmountRef extends MountRef {
  /** Where the use is. It tells one apart by itself, since `list` does not show mount flags. Default: where `access` and `mountName` say. */
  path?: string
}

/** What `mount` takes. */
export interface MountRequest extends MountRef {
  /** The name of the secrets of this volume, which `openHost({ secrets })` is asked for at each call. Default: it needs none. */
  secretsRef?: string | undefined
  /** What CreateVolume gave for it. Kept in the store. */
  volumeContext?: TextMap | undefined
  /** What ControllerPublishVolume gave for it, where somebody else has attached it. Default: the host attaches it if it can. */
  publishContext?: TextMap | undefined
}

/** A volume in use. Disposing of it unmounts it. */
export interface MountedVolume extends AsyncDisposable {
  /** Where it is, on the host. */
  readonly path: string
  readonly plugin: string
  readonly namespace: string
  readonly volumeId: string
  readonly allocId: string
  /** As `volumes.unmount`. Idempotent. */
  unmount(options?: VolumeCallOptions): Promise<void>
}

/** How long a call about a volume may take, its turn and the wait for its plugin included. */
export interface VolumeCallOptions {
  signal?: AbortSignal | undefined
  /** Default: 120 000. */
  timeoutMs?: number | undefined
}

/**
 * How one use of a volume is: `mounting` until it is there, `uncertain` from the opening of the host until its plugin has confirmed it,
 * `stale` where the mount is dead, as after the end of a FUSE server, or was unmounted by somebody else: `mount` makes it anew. `unmounting`
 * until it is gone.
 */
export type ClaimPhase = 'mounting' | 'uncertain' | 'mounted' | 'stale' | 'unmounting'

/** What stands in the way of something that is tried again until it is done. All of it is absent where nothing does. */
export interface VolumeObstacle {
  /** What the last attempt failed with, for people. */
  problem: string
  /** When the first one failed, in Unix ms. */
  failingSince: number
  /** How many have failed since then. */
  attempts: number
}

/** One use of a volume, as it is now. */
export interface ClaimState extends Partial<VolumeObstacle> {
  allocId: string
  mountName?: string
  access: VolumeAccess
  path: string
  phase: ClaimPhase
}

/** One volume that this host holds, as it is now; the problem is that of staging, unstaging, detaching or growing it. */
export interface VolumeState extends Partial<VolumeObstacle> {
  plugin: string
  namespace: string
  volumeId: string
  staged: boolean
  /** The id of the node that the host has attached it to. */
  attachedTo?: string
  claims: readonly ClaimState[]
}

/** Something that happened to a volume. */
export interface VolumeEvent {
  /**
   * `mounted`, `unmounted` · `kept`: confirmed after the host was opened · `stale`: the mount is dead or was unmounted by somebody else · `done`: a
   * call of the controller was made, or a growth that nobody knew the end of · `failed`: something was not done; what has to be done is tried again.
   */
  kind: 'mounted' | 'unmounted' | 'kept' | 'stale' | 'done' | 'failed'
  plugin: string
  /** For a call about something else, the id of that (a snapshot, say); for what is being made, its name. */
  volumeId: string
  /** Absent for calls of the controller, which know of none. */
  namespace?: string
  /** Who uses it. Absent where it is about the volume and not one use of it. */
  allocId?: string
  /** The call of the controller it is about. */
  call?: string
  /** For people; never a secret. */
  message: string
  at: number
}

/** What secrets are asked for: the call they go with. */
export interface SecretsRequest {
  secretsRef: string
  /** As in CSI: `NodeStageVolume`. */
  rpc: string
  plugin: string
  /** Absent for calls that are not about one volume. */
  volumeId?: string
}
