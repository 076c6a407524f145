import { isDeepStrictEqual } from 'node:util'
import { status, type CsiServices } from 'plugstream/csi'
import { boundsOf, chooseCapacity, isWithin } from './capacity.js'
import { checkMutableParameters, kindOf, required } from './checks.js'
import type { Driver } from './driver.js'
import { copyData, growFile, makeData, setMode } from './data.js'
import type { Kind, State, Volume } from './state.js'
import { checkTopology, type Segments } from './topology.js'

/** A volume as the controller tells of it. Its parameters are what the node gets to know of it. */
export function described({ id, capacityBytes, parameters, sourceId }: Volume, topology: Segments) {
  return {
    volume_id: id,
    capacity_bytes: capacityBytes,
    volume_context: parameters,
    content_source: sourceId === undefined ? null : contentSource(sourceId),
    accessible_topology: [{ segments: topology }],
  }
}

function contentSource(id: string) {
  return id.startsWith('snapshot-') ? { snapshot: { snapshot_id: id } } : { volume: { volume_id: id } }
}

export function createVolume({ state, attach, topology }: Driver): NonNullable<CsiServices['controller']> {
  return {
    CreateVolume(request) {
      const { name, parameters, mutable_parameters, volume_content_source } = request
      const id = state.volumes.idOf(required('name', name))
      const capabilities = required('volume_capabilities', request.volume_capabilities)
      const [kind, other] = new Set(capabilities.map((capability) => kindOf(capability, attach.block)))
      if (!kind || other) throw status('INVALID_ARGUMENT', 'a volume cannot be both a mount and a block volume')
      checkMutableParameters(mutable_parameters)
      checkTopology(topology, request.accessibility_requirements)
      const bounds = boundsOf(request.capacity_range)
      const sourceId = volume_content_source?.snapshot?.snapshot_id ?? volume_content_source?.volume?.volume_id
      if (volume_content_source) required('volume_content_source', sourceId)

      return state.exclusive([id, ...(sourceId ? [sourceId] : [])], async () => {
        const existing = await state.volumes.find(id)
        if (existing) {
          const fits =
            existing.kind === kind &&
            existing.sourceId === sourceId &&
            isDeepStrictEqual(existing.parameters, parameters) &&
            isWithin(existing.capacityBytes, bounds)
          if (fits) return { volume: described(existing, topology) }
          const { kind: sort, capacityBytes, sourceId: origin = 'nothing' } = existing
          throw status('ALREADY_EXISTS', `${name} is a ${sort} volume of ${capacityBytes} bytes, made from ${origin}`)
        }
        const source = sourceId === undefined ? undefined : await sourceOf(state, sourceId, kind)
        const capacityBytes = chooseCapacity(bounds, kind, source?.sizeBytes)
        const data = state.volumeData(id)
        if (source) await copyData(source.data, data)
        else await makeData(data, kind, capacityBytes)
        if (source && kind === 'block') await growFile(data, capacityBytes)
        await setMode(data, mutable_parameters)
        const volume: Volume = {
          id,
          name,
          kind,
          capacityBytes: String(capacityBytes),
          parameters,
          mutableParameters: mutable_parameters,
          ...(sourceId && { sourceId }),
          published: [],
        }
        await state.volumes.save(volume) // last: it is there once everything is
        return { volume: described(volume, topology) }
      })
    },
  }
}

async function sourceOf(state: State, id: string, kind: Kind): Promise<{ data: string; sizeBytes: bigint }> {
  const isSnapshot = state.snapshots.isId(id)
  const source = isSnapshot ? await state.snapshots.get(id) : await state.volumes.get(id)
  if (source.kind !== kind) throw status('INVALID_ARGUMENT', `${id} is the source of ${source.kind} volumes only`)
  return {
    data: isSnapshot ? state.snapshotData(id) : state.volumeData(id),
    sizeBytes: BigInt('sizeBytes' in source ? source.sizeBytes : source.capacityBytes),
  }
}
