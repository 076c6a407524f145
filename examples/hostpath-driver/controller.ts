import { statfs } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { status, type CsiServices } from 'plugstream/csi'
import { boundsOf, chooseCapacity, maxCapacityBytes } from './capacity.js'
import { checkKind, checkMutableParameters, kindOf, objection, required } from './checks.js'
import type { Driver } from './driver.js'
import { createVolume, described } from './create-volume.js'
import { growFile, setMode } from './data.js'
import { freeLoopDevices } from './loop.js'
import { publishVolume } from './publish-volume.js'
import { snapshots } from './snapshots.js'
import { isHere } from './topology.js'
import { Uses } from './uses.js'
import { volumeHealth } from './volume-health.js'
import type { Volume } from './state.js'

const capabilities = [
  'CREATE_DELETE_VOLUME',
  'PUBLISH_UNPUBLISH_VOLUME',
  'LIST_VOLUMES',
  'GET_CAPACITY',
  'CREATE_DELETE_SNAPSHOT',
  'LIST_SNAPSHOTS',
  'CLONE_VOLUME',
  'PUBLISH_READONLY',
  'EXPAND_VOLUME',
  'LIST_VOLUMES_PUBLISHED_NODES',
  'GET_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
  'MODIFY_VOLUME',
  'GET_SNAPSHOT',
  'GET_VOLUME_HEALTH',
  'LIST_VOLUME_HEALTH',
] as const

/** The Controller half: volumes and snapshots are made, changed, told of and deleted. */
export function controller(driver: Driver): NonNullable<CsiServices['controller']> {
  const { state, attach, topology } = driver
  const { volumes } = state
  const uses = new Uses(driver)
  const entry = (volume: Volume) => ({
    volume: described(volume, topology),
    status: { published_node_ids: volume.published.map(({ nodeId }) => nodeId) },
  })

  return {
    ...createVolume(driver),
    ...publishVolume(driver),
    ...snapshots(driver),
    ...volumeHealth(driver),

    ControllerGetCapabilities: () => ({ capabilities: capabilities.map((type) => ({ rpc: { type } })) }),

    DeleteVolume: ({ volume_id }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const volume = await volumes.find(volume_id)
        if (volume && (volume.published.length > 0 || (await uses.any(volume)))) {
          throw status('FAILED_PRECONDITION', `volume ${volume_id} is in use`)
        }
        if (volume?.kind === 'block') await freeLoopDevices(state.volumeData(volume_id))
        await volumes.remove(volume_id)
        return {}
      }),

    async ListVolumes(request) {
      const { records, next_token } = volumes.page(await volumes.list(), request)
      return { entries: records.map(entry), next_token }
    },

    ControllerGetVolume: async ({ volume_id }) => entry(await volumes.get(required('volume_id', volume_id))),

    async GetCapacity({ accessible_topology, volume_capabilities }) {
      const possible =
        (!accessible_topology || isHere(topology, accessible_topology)) &&
        !volume_capabilities.some((capability) => objection(capability, attach.block))
      const { bavail, bsize } = await statfs(state.directory, { bigint: true })
      return {
        available_capacity: String(possible ? bavail * bsize : 0n),
        maximum_volume_size: { value: String(maxCapacityBytes) },
      }
    },

    async ValidateVolumeCapabilities(request) {
      const { volume_context, parameters, mutable_parameters } = request
      const volume = await volumes.get(required('volume_id', request.volume_id))
      const volume_capabilities = required('volume_capabilities', request.volume_capabilities)
      const differs = (field: string, given: object, real: object): string =>
        Object.keys(given).length > 0 && !isDeepStrictEqual({ ...given }, real) ? `${field} is not the volume's` : ''
      const message =
        volume_capabilities.map((capability) => objection(capability, attach.block)).find(Boolean) ||
        (volume_capabilities.some(({ access_type }) => access_type !== volume.kind) &&
          `it is a ${volume.kind} volume`) ||
        differs('volume_context', volume_context, volume.parameters) ||
        differs('parameters', parameters, volume.parameters) ||
        differs('mutable_parameters', mutable_parameters, volume.mutableParameters)
      if (message) return { message }
      return { confirmed: { volume_capabilities, volume_context, parameters, mutable_parameters } }
    },

    ControllerExpandVolume: ({ volume_id, capacity_range, volume_capability }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const bounds = boundsOf(required('capacity_range', capacity_range))
        const volume = await volumes.get(volume_id)
        if (volume_capability) checkKind(volume, kindOf(volume_capability, attach.block))
        const capacityBytes = String(chooseCapacity(bounds, volume.kind, BigInt(volume.capacityBytes)))
        if (volume.kind === 'block') await growFile(state.volumeData(volume_id), BigInt(capacityBytes))
        await volumes.save({ ...volume, capacityBytes })
        return { capacity_bytes: capacityBytes, node_expansion_required: volume.kind === 'block' }
      }),

    ControllerModifyVolume: ({ volume_id, mutable_parameters }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const volume = await volumes.get(volume_id)
        checkMutableParameters(mutable_parameters)
        await setMode(state.volumeData(volume_id), mutable_parameters)
        const mutableParameters = { ...volume.mutableParameters, ...mutable_parameters }
        await volumes.save({ ...volume, mutableParameters })
        return {}
      }),
  }
}
