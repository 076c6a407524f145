import type { CsiClient } from '../csi/client.js'
import type { PluginInfo, PluginType } from '../plugin/plugin.js'
import type { StateStore } from '../store/state-store.js'
import type { Secrets } from '../csi/messages/shared.js'
import type { ControllerCall } from './controller-call.js'
import type { Mount } from './mount-table.js'
import type { PathState } from './path-state.js'
import type { VolumeAccess, SecretsRequest } from './volume.js'

/** What of the machine the volume manager needs. Paths are the host's. */
export interface VolumeFiles {
  /** Whether plugins mount volumes. Where this process may not mount, they do not either, and make do with directories and links. */
  readonly expectsMounts: boolean
  /** Another after each start of the machine; undefined where there is none. */
  readonly bootId: string | undefined
  /** What is mounted; undefined where that cannot be seen. */
  mounts: () => Promise<readonly Mount[] | undefined>
  /** Makes the directories above a path below `root`, for their owner alone, and gives it without symbolic links. @throws ERR_MOUNT. */
  placeOf: (root: string, path: string) => Promise<string>
  /** The same, and makes the directory itself. @throws ERR_MOUNT. */
  makeDirectory: (root: string, path: string) => Promise<void>
  /** Whether there is a symbolic link at a path, which is not looked up itself. */
  isLink: (path: string) => Promise<boolean>
  /** Removes a directory if it is empty, at once; anything else stays. */
  removeIfEmpty: (path: string) => void
  /** Looked at by another process, since a look at a dead mount may never end. */
  look: (path: string, signal: AbortSignal) => Promise<{ state: PathState; description: string }>
}

/** What the volume manager needs of its host. */
export interface VolumePorts {
  store: Pick<StateStore, 'read' | 'save'>
  files: VolumeFiles
  /** The volume root of a plugin, on the host; the one of its instance comes first. */
  volumeRoot: (plugin: string) => string
  /** Whether a plugin is registered, or is being replaced and will be again. */
  isRegistered: (type: PluginType, plugin: string) => boolean
  /** Resolves with the newest healthy instance of a plugin, as soon as there is one. */
  ready: (type: PluginType, plugin: string, signal: AbortSignal) => Promise<PluginInfo>
  client: (type: PluginType, plugin: string) => CsiClient
  /** Hears that a plugin has no room for another volume on this node. */
  isFull: (plugin: string) => void
  /** Fails with ERR_OPTION_INVALID where an access cannot be sent. */
  checkAccess: (access: VolumeAccess, field: string) => void
  /** Fails with ERR_OPTION_INVALID naming the field where a request cannot be sent. */
  check: (call: ControllerCall, request: object) => void
  /** The fields that the request of a call has. */
  fields: (call: ControllerCall) => readonly string[]
  /** The secrets of a call. Fails with ERR_OPTION_INVALID where there are none of that name. Nobody waits for it once the signal is aborted. */
  secrets: (request: SecretsRequest, signal: AbortSignal) => Promise<Secrets>
  now: () => number
}
