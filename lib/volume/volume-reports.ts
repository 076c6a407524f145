import type { VolumeHealth } from '../csi/messages/health.js'
import type { NodeGetVolumeStatsResponse } from '../csi/messages/node.js'
import type { CapacityRange } from '../csi/messages/shared.js'
import { invalidOption } from '../errors.js'
import { unlessUnsupported } from './errors.js'
import { grow } from './growth.js'
import type { HeldVolume } from './held-volume.js'
import type { Limits } from './limits.js'
import type { Operations } from './operations.js'
import { placesOf, type Places } from './places.js'
import type { PluginHalves } from './plugin-halves.js'
import type { VolumePorts } from './ports.js'
import { name, takeRef } from './take-mount.js'
import type { VolumeCallOptions, VolumeRef } from './volume.js'
import type { VolumePlugin } from './volume-course.js'
import type { VolumeManager } from './volume-manager.js'

/** What `expand` takes. */
export interface ExpandRequest extends VolumeRef {
  capacityRange: CapacityRange
  /** Default: the name the volume was mounted with. */
  secretsRef?: string | undefined
}

const well: VolumeHealth = { healthy: true, problems: [] }

/** What is asked of the plugin about a volume that the host holds, and its growth. */
export class VolumeReports {
  readonly #ports: VolumePorts
  readonly #operations: Operations
  readonly #halves: PluginHalves
  readonly #manager: Pick<VolumeManager, 'find' | 'lookForLost' | 'settleLater'>

  constructor(
    ports: VolumePorts,
    operations: Operations,
    halves: PluginHalves,
    manager: Pick<VolumeManager, 'find' | 'lookForLost' | 'settleLater'>,
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
    return this.#about('asking for the health of', given, options, async (plugin, places, limits, held) => {
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
   * Lets a volume grow: in its storage, where its plugin has a controller half that can, and then on the node, where that is needed. Once
   * begun, it goes on until it is known what became of it, also where its caller gave up, and after a restart of the host; but for a volume
   * that is unmounted meanwhile.
   *
   * @returns the size it has then, where it is known.
   */
  async expand(given: ExpandRequest, options: VolumeCallOptions = {}): Promise<{ capacityBytes?: bigint }> {
    const { volumeId } = takeRef(given, ['capacityRange'])
    const { capacityRange, secretsRef, ...ref } = given
    this.#ports.check('controllerExpandVolume', { volumeId, capacityRange })
    if (secretsRef !== undefined) name('secretsRef', secretsRef)
    const range = { ...capacityRange } // its giver may use the object again
    const growth = { capacityRange: range, ...(secretsRef !== undefined && { secretsRef }) }
    return this.#about('expanding', ref, options, async (plugin, _places, limits, held) => {
      const secretsOf = (rpc: string) => this.#halves.secrets({ ...held.record, ...growth }, rpc, limits)
      try {
        await held.save({ ...held.record, growth })
        return await grow(held, plugin, secretsOf, limits)
      } catch (failure) {
        if (held.record.growth) held.failed('', failure)
        throw failure
      } finally {
        const isSettled = await held.resave().then(
          () => !held.record.growth,
          () => false,
        )
        if (!isSettled) this.#manager.settleLater(held)
      }
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
    work: (plugin: VolumePlugin, places: Places, limits: Limits, held: HeldVolume) => Promise<T>,
  ): Promise<T> {
    const { plugin, volumeId } = takeRef(given)
    const what = `${doing} volume ${JSON.stringify(volumeId)} of plugin ${JSON.stringify(plugin)}`
    return this.#operations.inTurn(what, { plugin, id: volumeId }, options, (limits) => {
      const held = this.#manager.find(given)
      const place = held?.record.claims.find((claim) => claim.held) ?? held?.record.stage
      if (!held || !place) throw invalidOption('volumeId', volumeId, 'a volume that this host has mounted')
      return this.#halves.with(held.record, limits, (halves) =>
        work(halves, placesOf(held.record, place, halves.node.seen), limits, held),
      )
    })
  }
}
