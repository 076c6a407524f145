import { status, type CsiServices } from 'plugstream/csi'
import { checkKind, kindOf, required } from './checks.js'
import type { Driver } from './driver.js'
import type { Publication } from './state.js'

/** Which nodes may use which volume. There is nothing to be connected here: it is a matter of record. */
export function publishVolume({ state, attach }: Driver): NonNullable<CsiServices['controller']> {
  const { volumes, nodes } = state

  async function checkRoom(nodeId: string, maxVolumes: number): Promise<void> {
    if (maxVolumes === 0) return
    const all = (await volumes.list()).flatMap(({ published }) => published)
    if (all.filter((publication) => publication.nodeId === nodeId).length < maxVolumes) return
    throw status('RESOURCE_EXHAUSTED', `node ${nodeId} has its ${maxVolumes} volumes`)
  }

  return {
    async ControllerPublishVolume({ volume_id, node_id, volume_capability, readonly }) {
      required('volume_id', volume_id)
      const nodeKey = nodes.idOf(required('node_id', node_id))
      const kind = kindOf(volume_capability, attach.block)
      const accessMode = volume_capability?.access_mode?.mode ?? ''
      await volumes.get(volume_id)
      const node = await nodes.find(nodeKey)
      if (!node) throw status('NOT_FOUND', `there is no node ${node_id}`)

      // With a limit, volumes of one node are counted one after the other.
      return state.exclusive(node.maxVolumes > 0 ? [volume_id, nodeKey] : volume_id, async () => {
        const volume = await volumes.get(volume_id)
        checkKind(volume, kind)
        const wanted: Publication = { nodeId: node_id, readonly, accessMode }
        const [existing] = volume.published
        if (!existing) {
          await checkRoom(node_id, node.maxVolumes)
          await volumes.save({ ...volume, published: [wanted] })
        } else if (existing.nodeId !== node_id) {
          throw status('FAILED_PRECONDITION', `volume ${volume_id} is published to node ${existing.nodeId}`)
        } else if (existing.readonly !== readonly || existing.accessMode !== accessMode) {
          throw status('ALREADY_EXISTS', `volume ${volume_id} is published to node ${node_id} with other access`)
        }
        return { publish_context: { readonly: String(readonly) } }
      })
    },

    ControllerUnpublishVolume: ({ volume_id, node_id }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const volume = await volumes.find(volume_id)
        if (!volume) return {}
        const published = volume.published.filter(({ nodeId }) => node_id !== '' && nodeId !== node_id)
        if (published.length < volume.published.length) await volumes.save({ ...volume, published })
        return {}
      }),
  }
}
