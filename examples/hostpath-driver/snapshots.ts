import { status, type CsiServices } from 'plugstream/csi'
import { required } from './checks.js'
import type { Driver } from './driver.js'
import { copyData } from './data.js'
import type { Snapshot, State, Volume } from './state.js'
import { checkTopology } from './topology.js'

export function timestamp(ms: number) {
  return { seconds: String(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 }
}

/** Where it can be used is left open: volumes made from it are where all data is, and say so. */
export function describedSnapshot(snapshot: Snapshot) {
  return {
    snapshot_id: snapshot.id,
    source_volume_id: snapshot.volumeId,
    size_bytes: snapshot.sizeBytes,
    creation_time: timestamp(snapshot.createdAt),
    ready_to_use: true,
    group_snapshot_id: snapshot.groupId ?? '',
  }
}

/** Copies a volume's data; the snapshot is there once all of it is. */
export async function takeSnapshot(
  state: State,
  { id: volumeId, kind, capacityBytes }: Volume,
  identity: { id: string; createdAt: number; groupId?: string },
): Promise<Snapshot> {
  const snapshot: Snapshot = { ...identity, volumeId, kind, sizeBytes: capacityBytes }
  await copyData(state.volumeData(volumeId), state.snapshotData(snapshot.id))
  await state.snapshots.save(snapshot)
  return snapshot
}

export function snapshots({ state, topology }: Driver): NonNullable<CsiServices['controller']> {
  return {
    CreateSnapshot({ name, source_volume_id, accessibility_requirements }) {
      const id = state.snapshots.idOf(required('name', name))
      required('source_volume_id', source_volume_id)
      checkTopology(topology, accessibility_requirements)
      return state.exclusive([id, source_volume_id], async () => {
        const existing = await state.snapshots.find(id)
        if (existing && existing.volumeId !== source_volume_id) {
          throw status('ALREADY_EXISTS', `there is a snapshot ${name} of volume ${existing.volumeId}`)
        }
        const snapshot =
          existing ??
          (await takeSnapshot(state, await state.volumes.get(source_volume_id), { id, createdAt: Date.now() }))
        return { snapshot: describedSnapshot(snapshot) }
      })
    },

    DeleteSnapshot: ({ snapshot_id }) =>
      state.exclusive(required('snapshot_id', snapshot_id), async () => {
        const { groupId } = (await state.snapshots.find(snapshot_id)) ?? {}
        // Of a group that was never completed, there are only its snapshots.
        if (groupId !== undefined && (await state.groups.find(groupId))) {
          throw status('FAILED_PRECONDITION', `snapshot ${snapshot_id} is deleted with its group, ${groupId}`)
        }
        await state.snapshots.remove(snapshot_id)
        return {}
      }),

    async GetSnapshot({ snapshot_id }) {
      const snapshot = await state.snapshots.get(required('snapshot_id', snapshot_id))
      return { snapshot: describedSnapshot(snapshot) }
    },

    async ListSnapshots(request) {
      const { snapshot_id, source_volume_id } = request
      const asked = (await state.snapshots.list()).filter(
        ({ id, volumeId }) =>
          (snapshot_id === '' || id === snapshot_id) && (source_volume_id === '' || volumeId === source_volume_id),
      )
      const { records, next_token } = state.snapshots.page(asked, request)
      return { entries: records.map((snapshot) => ({ snapshot: describedSnapshot(snapshot) })), next_token }
    },
  }
}
