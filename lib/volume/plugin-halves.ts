import type { Secrets } from '../csi/messages/shared.js'
import type { ControllerPlugin } from './attach-steps.js'
import type { Limits } from './limits.js'
import type { NodePlugin } from './node-steps.js'
import type { Operations } from './operations.js'
import type { VolumePorts } from './ports.js'
import { readyPlugin } from './ready-plugin.js'
import { secretsOf } from './secrets.js'
import type { TakenRef } from './take-mount.js'
import type { VolumePlugin } from './volume-course.js'
import { seenPath } from './volume-paths.js'

/** Whose secrets are needed. */
type Of = TakenRef & { secretsRef?: string }

/** The node and controller halves of plugins, as work with a volume needs them: there, and with its paths and secrets. */
export class PluginHalves {
  readonly #ports: VolumePorts
  readonly #operations: Operations

  constructor(ports: VolumePorts, operations: Operations) {
    this.#ports = ports
    this.#operations = operations
  }

  /** Does work with the plugin of a volume as soon as it is there, and there are not too many at it. */
  async with<T>(volume: Of, limits: Limits, work: (plugin: VolumePlugin) => Promise<T>): Promise<T> {
    const { mountPoint, containerMountPoint = mountPoint } = await this.#places(volume.plugin, limits)
    const { client, files } = this.#ports
    const node: NodePlugin = {
      client: client('csi-node', volume.plugin),
      ready: async (within) => {
        await readyPlugin(this.#ports, 'csi-node', volume.plugin, within)
      },
      seen: (path) => seenPath(path, mountPoint, containerMountPoint),
      secrets: (rpc, within) => this.secrets(volume, rpc, within),
      files,
    }
    const controller = async (within: Limits): Promise<ControllerPlugin> => {
      await readyPlugin(this.#ports, 'csi-controller', volume.plugin, within)
      return {
        client: client('csi-controller', volume.plugin),
        secrets: (rpc, within) => this.secrets(volume, rpc, within),
      }
    }
    return this.#operations.inPlace(volume.plugin, limits, () =>
      work({
        node,
        controller,
        hasController: this.hasController(volume.plugin),
        isFull: () => this.#ports.isFull(volume.plugin),
      }),
    )
  }

  /** Whether a plugin has a controller half on this host. */
  hasController(plugin: string): boolean {
    return this.#ports.isRegistered('csi-controller', plugin)
  }

  /** The volume root of a plugin, as soon as it is there. */
  async root(plugin: string, limits: Limits): Promise<string> {
    return (await this.#places(plugin, limits)).mountPoint
  }

  /** The volume root as the host and as the plugin sees it. */
  async #places(plugin: string, limits: Limits): Promise<{ mountPoint: string; containerMountPoint?: string }> {
    const { options } = await readyPlugin(this.#ports, 'csi-node', plugin, limits)
    return { ...options, mountPoint: options['mountPoint'] ?? this.#ports.volumeRoot(plugin) }
  }

  /** What goes with a call, where it needs any. @throws as `secretsOf`. */
  secrets({ secretsRef, plugin, volumeId }: Of, rpc: string, limits: Limits): Promise<{ secrets?: Secrets }> {
    return secretsOf(this.#ports, { secretsRef, rpc, plugin, volumeId }, limits)
  }
}
