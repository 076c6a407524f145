import type { CsiClient } from '../csi/client.js'
import type { ControllerExpandVolumeResponse } from '../csi/messages/controller.js'
import type { Secrets } from '../csi/messages/shared.js'
import { PlugstreamError } from '../errors.js'
import { isFinalAnswer, mountError, unlessUnsupported } from './errors.js'
import type { HeldVolume } from './held-volume.js'
import type { Limits } from './limits.js'
import { placesOf } from './places.js'
import { without, type Claim } from './volume-record.js'
import type { VolumePlugin } from './volume-course.js'

type SecretsOf = (rpc: string) => Promise<{ secrets?: Secrets }>

/**
 * Lets a volume grow as its record says: in its storage, where its plugin has a controller half that can, and then on the node, where that
 * is needed. It stays on record until the plugin has said what became of it: made again, it ends where it would have.
 *
 * @returns the size it has then, where it is known.
 */
export async function grow(
  volume: HeldVolume,
  plugin: VolumePlugin,
  secretsOf: SecretsOf,
  limits: Limits,
): Promise<{ capacityBytes?: bigint }> {
  const { growth } = volume.record
  const uses = volume.record.claims.filter((claim) => claim.held)
  const isThere = (claim: Claim): boolean => volume.isPublished(claim) && !volume.isStale(claim)
  const use = uses.find(isThere) ?? uses[0]
  const place = use ?? volume.record.stage
  if (!growth || !place) return {}
  if (use && !isThere(use))
    throw mountError(`it is to grow, which has to wait until ${use.path} is mounted`, use.path, true)
  const { readonly: _ofUse, ...volumeCapability } = place.access
  const places = placesOf(volume.record, place, plugin.node.seen)
  const request = { volumeId: places.volumeId, capacityRange: growth.capacityRange, volumeCapability }
  let isGrown = false
  try {
    const inStorage = await growInStorage(plugin, request, secretsOf, limits)
    isGrown = true
    let { capacityBytes } = inStorage
    if (inStorage.nodeExpansionRequired) {
      const secrets = await secretsOf('NodeExpandVolume')
      limits.doing = 'NodeExpandVolume'
      const onNode = await plugin.node.client.nodeExpandVolume({ ...places, ...request, ...secrets }, limits.call)
      capacityBytes = onNode.capacityBytes ?? capacityBytes
    }
    volume.put(without(volume.record, 'growth'))
    return capacityBytes === undefined ? {} : { capacityBytes }
  } catch (failure) {
    if (isFinalAnswer(failure) || (!isGrown && isRefused(failure))) volume.put(without(volume.record, 'growth'))
    throw failure
  }
}

async function growInStorage(
  plugin: VolumePlugin,
  request: Parameters<CsiClient['controllerExpandVolume']>[0],
  secretsOf: SecretsOf,
  limits: Limits,
): Promise<ControllerExpandVolumeResponse> {
  const onNode = { nodeExpansionRequired: true }
  const controller = plugin.hasController ? await plugin.controller(limits) : undefined
  if (!controller) return onNode
  const secrets = await secretsOf('ControllerExpandVolume')
  limits.doing = 'ControllerExpandVolume'
  return unlessUnsupported(
    () => controller.client.controllerExpandVolume({ ...request, ...secrets }, limits.call),
    onNode,
  )
}

/** It cannot even be asked for, as without its secrets. */
function isRefused(failure: unknown): boolean {
  return failure instanceof PlugstreamError && failure.code === 'ERR_OPTION_INVALID'
}
