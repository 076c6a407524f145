import type { CsiClient } from '../csi/client.js'
import type { TextMap } from '../csi/codec.js'
import type { Secrets } from '../csi/messages/shared.js'
import { isNotFound, isUnsupported } from './errors.js'
import type { Limits } from './limits.js'
import type { VolumeAccess } from './volume.js'
import type { VolumeRecord } from './volume-record.js'

/** The controller half of a plugin. */
export interface ControllerPlugin {
  client: CsiClient
  /** @throws ERR_OPTION_INVALID where secrets are needed and not to be had. */
  secrets: (rpc: string, limits: Limits) => Promise<{ secrets?: Secrets }>
}

/**
 * Attaches a volume to a node.
 *
 * @returns what the node is to be told; undefined where the plugin does not attach.
 */
export async function attach(
  { client, secrets }: ControllerPlugin,
  { volumeId, volumeContext }: VolumeRecord,
  nodeId: string,
  volumeCapability: VolumeAccess,
  limits: Limits,
): Promise<TextMap | undefined> {
  const request = {
    volumeId,
    nodeId,
    volumeCapability,
    ...(volumeContext && { volumeContext }),
    ...(await secrets('ControllerPublishVolume', limits)),
  }
  limits.doing = 'ControllerPublishVolume'
  try {
    return (await client.controllerPublishVolume(request, limits.call)).publishContext
  } catch (failure) {
    if (isUnsupported(failure)) return undefined
    throw failure
  }
}

/**
 * Detaches a volume from a node. NOT_FOUND says that the controller knows the volume or the node no more, not that the one is detached
 * from the other: then its list has to say so.
 */
export async function detach(
  { client, secrets }: ControllerPlugin,
  { volumeId }: Pick<VolumeRecord, 'volumeId'>,
  nodeId: string,
  limits: Limits,
): Promise<void> {
  limits.doing = 'ControllerUnpublishVolume'
  try {
    const request = { volumeId, nodeId, ...(await secrets('ControllerUnpublishVolume', limits)) }
    await client.controllerUnpublishVolume(request, limits.call)
  } catch (failure) {
    if (isUnsupported(failure)) return
    if (!isNotFound(failure) || !(await isDetached(client, volumeId, nodeId, limits))) throw failure
  }
}

/** Whether the controller lists where its volumes are, and this one is not on this node. */
async function isDetached(client: CsiClient, volumeId: string, nodeId: string, limits: Limits): Promise<boolean> {
  limits.doing = 'ListVolumes'
  const { names } = await client.controllerGetCapabilities({}, limits.call)
  if (!names.includes('LIST_VOLUMES_PUBLISHED_NODES')) return false
  for await (const { volume, status } of client.allVolumes({}, limits.call)) {
    if (volume.volumeId === volumeId) return !status?.publishedNodeIds.includes(nodeId)
  }
  return true
}
