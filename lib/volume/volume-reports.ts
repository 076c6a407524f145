import type { CsiClient } from '../csi/client.js'
import type { ControllerExpandVolumeResponse } from '../csi/messages/controller.js'
import type { VolumeHealth } from '../csi/messages/health.js'
import type { NodeGetVolumeStatsResponse } from '../csi/messages/node.js'
import type { CapacityRange } from '../csi/messages/shared.js'
import { invalidOption } from '../errors.js'
import type { ControllerPlugin } from './attach-steps.js'
import { isUnsupported } from './errors.js'
import type { HeldVolume } from './held-volume.js'
import type { Limits } from './limits.js'
import type { Operations } from './operations.js'
import type { PluginHalves } from './plugin-halves.js'
import type { VolumePorts } from './ports.js'
import { name, takeRef } from './take-mount.js'
import type { VolumeAccess, VolumeCallOptions, VolumeRef } from './volume.js'
import type { VolumePlugin } from './volume-course.js'
import type { VolumeManager } from './volume-manager.js'

/** What `expand` takes. */
export interface ExpandRequest extends VolumeRef {
  capacityRange: CapacityRange
  /** Default: the name the volume was mounted with. */
  secretsRef?: string | undefined
}

/** Where a volume is for its plugin, as calls on the node want it. */
interface Places {
  volumeId: string
  volumePath: string
  stagingTargetPath?: string
}

const well: VolumeHealth = { healthy: true, problems: [] }

/** What is asked of the plugin about a volume that the host holds, and its growth. */
export class VolumeReports {
  readonly #ports: VolumePorts
  readonly #operations: Operations
  readonly #halves: PluginHalves
  readonly #manager: Pick<VolumeManager, 'find' | 'lookForLost'>

  constructor(
    ports: VolumePorts,
    operations: Operations,
    halves: PluginHalves,
    manager: Pick<VolumeManager, 'find' | 'lookForLost'>,
  ) {
    this.#ports = ports
    this.#operations = operations
    this.#halves = halves
    this.#manager = manager
  }

  /** How full a volume is. */
  stats(given: VolumeRef, options: VolumeCallOptions = {}): Promise<NodeGetVolumeStatsResponse> {
    return this.#about('asking for the usage of', given, options, ({ node }, places, limits) =>
      node.client.nodeGetVolumeStats(places, limits.call),
    )
  }

  /**
   * How a volume is: what its plugin says of it on the node, or else in the controller, and what the host sees itself. Without any of
   * these it is taken for healthy.
   */
  health(given: VolumeRef, options: VolumeCallOptions = {}): Promise<VolumeHealth> {
    return this.#about('asking for the health of', given, options, async (plugin, places, limits, { held }) => {
      const lost = new Set((await this.#manager.lookForLost(held)).map(({ path }) => path))
      const seen = held.state.claims.flatMap(({ phase, path, problem = path }) => {
        const reason = lost.has(path) ? 'NotMounted' : 'MountIsDead'
        return phase === 'stale' ? [{ status: 'INACCESSIBLE' as const, reason, message: problem }] : []
      })
      const told = await this.#told(plugin, places, limits).catch((failure: unknown) => {
        // Plugins look at the mount themselves, and fail where it is dead.
        if (seen.length === 0) throw failure
        return well
      })
      return { healthy: told.healthy && seen.length === 0, problems: [...told.problems, ...seen] }
    })
  }

  /**
   * Lets a volume grow: in its storage, where its plugin has a controller half that can, and then on the node, where that is needed.
   *
   * @returns the size it has then, where it is known.
   */
  async expand(given: ExpandRequest, options: VolumeCallOptions = {}): Promise<{ capacityBytes?: bigint }> {
    const { volumeId } = takeRef(given, ['capacityRange'])
    const { capacityRange, secretsRef, ...ref } = given
    this.#ports.check('controllerExpandVolume', { volumeId, capacityRange })
    if (secretsRef !== undefined) name('secretsRef', secretsRef)
    const range = { ...capacityRange } // its giver may use the object again
    return this.#about('expanding', ref, options, async (plugin, places, limits, { held, access }) => {
      const { readonly: _ofUse, ...volumeCapability } = access
      const request = { volumeId: places.volumeId, capacityRange: range, volumeCapability }
      const of = { ...held.record, ...(secretsRef !== undefined && { secretsRef }) }
      const grown = await this.#expandInStorage(plugin, request, (rpc) => this.#halves.secrets(of, rpc, limits), limits)
      let { capacityBytes } = grown
      if (grown.nodeExpansionRequired) {
        const secrets = await this.#halves.secrets(of, 'NodeExpandVolume', limits)
        limits.doing = 'NodeExpandVolume'
        const onNode = await plugin.node.client.nodeExpandVolume({ ...places, ...request, ...secrets }, limits.call)
        capacityBytes = onNode.capacityBytes ?? capacityBytes
      }
      return capacityBytes === undefined ? {} : { capacityBytes }
    })
  }

  async #expandInStorage(
    plugin: VolumePlugin,
    request: Parameters<CsiClient['controllerExpandVolume']>[0],
    secretsOf: (rpc: string) => ReturnType<ControllerPlugin['secrets']>,
    limits: Limits,
  ): Promise<ControllerExpandVolumeResponse> {
    const controller = plugin.hasController ? await plugin.controller(limits) : undefined
    if (!controller) return { nodeExpansionRequired: true }
    const secrets = await secretsOf('ControllerExpandVolume')
    limits.doing = 'ControllerExpandVolume'
    return unlessUnsupported(() => controller.client.controllerExpandVolume({ ...request, ...secrets }, limits.call), {
      nodeExpansionRequired: true,
    })
  }

  async #told(plugin: VolumePlugin, places: Places, limits: Limits): Promise<VolumeHealth> {
    const { volumeId, volumePath, stagingTargetPath } = places
    const { client } = plugin.node
    const staged = stagingTargetPath === undefined ? {} : { stagingTargetPath }
    limits.doing = 'asking its plugin'
    const ways = [
      async () =>
        (await client.nodeGetVolumeHealth({ volumeId, volumePublishPath: volumePath, ...staged }, limits.call))
          .volumeHealth,
      async () => (await client.nodeGetVolumeStats(places, limits.call)).health,
      ...(plugin.hasController
        ? [
            async () => {
              const controller = await plugin.controller(limits)
              const secrets = await controller.secrets('ControllerGetVolumeHealth', limits)
              return (await controller.client.controllerGetVolumeHealth({ volumeId, ...secrets }, limits.call))
                .volumeHealth
            },
            async () => {
              const controller = await plugin.controller(limits)
              return (await controller.client.controllerGetVolume({ volumeId }, limits.call)).status?.health
            },
          ]
        : []),
    ]
    for (const way of ways) {
      const health = await unlessUnsupported(way, undefined)
      if (health) return health
    }
    return well
  }

  async #about<T>(
    doing: string,
    given: VolumeRef,
    options: VolumeCallOptions,
    work: (
      plugin: VolumePlugin,
      places: Places,
      limits: Limits,
      volume: { held: HeldVolume; access: VolumeAccess },
    ) => Promise<T>,
  ): Promise<T> {
    const { plugin, volumeId } = takeRef(given)
    const what = `${doing} volume ${JSON.stringify(volumeId)} of plugin ${JSON.stringify(plugin)}`
    return this.#operations.inTurn(what, { plugin, id: volumeId }, options, (limits) => {
      const held = this.#manager.find(given)
      const place = held?.record.claims.find((claim) => claim.held) ?? held?.record.stage
      if (!held || !place) throw invalidOption('volumeId', volumeId, 'a volume that this host has mounted')
      return this.#halves.with(held.record, limits, (halves) => {
        const { stage } = held.record
        const places: Places = {
          volumeId,
          volumePath: halves.node.seen(place.path),
          ...(stage && { stagingTargetPath: halves.node.seen(stage.path) }),
        }
        return work(halves, places, limits, { held, access: place.access })
      })
    })
  }
}

/** What a call answers, or something else where the plugin does not advertise it. */
async function unlessUnsupported<T, Other>(call: () => Promise<T>, otherwise: Other): Promise<T | Other> {
  try {
    return await call()
  } catch (failure) {
    if (isUnsupported(failure)) return otherwise
    throw failure
  }
}
