import { isDeepStrictEqual } from 'node:util'
import { status, type CsiServices } from 'plugstream/csi'
import { required } from './checks.js'
import type { Driver } from './driver.js'
import { describedSnapshot, takeSnapshot, timestamp } from './snapshots.js'
import type { Group } from './state.js'

/** Snapshots of several volumes, taken while nothing else is done to any of them. */
export function groupController({ state }: Driver): NonNullable<CsiServices['groupController']> {
  const { volumes, snapshots, groups } = state

  async function described(group: Group) {
    const members = await Promise.all(group.snapshotIds.map((id) => snapshots.get(id)))
    return {
      group_snapshot: {
        group_snapshot_id: group.id,
        snapshots: members.map(describedSnapshot),
        creation_time: timestamp(group.createdAt),
        ready_to_use: true,
      },
    }
  }

  function checkMembers({ id, snapshotIds }: Group, given: readonly string[]): void {
    if (isDeepStrictEqual([...given].sort(), snapshotIds)) return
    throw status('INVALID_ARGUMENT', `snapshot_ids must be those of ${id}: ${snapshotIds.join(', ')}`)
  }

  return {
    GroupControllerGetCapabilities: () => ({
      capabilities: [{ rpc: { type: 'CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT' } }],
    }),

    CreateVolumeGroupSnapshot({ name, source_volume_ids }) {
      const id = groups.idOf(required('name', name))
      const volumeIds = [...new Set(required('source_volume_ids', source_volume_ids))].sort()
      return state.exclusive([id, ...volumeIds], async () => {
        const existing = await groups.find(id)
        if (existing && !isDeepStrictEqual(existing.volumeIds, volumeIds)) {
          throw status('ALREADY_EXISTS', `there is a group ${name} of ${existing.volumeIds.join(', ')}`)
        }
        if (existing) return described(existing)
        const sources = await Promise.all(volumeIds.map((volumeId) => volumes.get(volumeId)))
        const createdAt = Date.now()
        const taken: string[] = []
        try {
          for (const source of sources) {
            const snapshotId = snapshots.idOf(id, source.id)
            taken.push(snapshotId)
            await takeSnapshot(state, source, { id: snapshotId, createdAt, groupId: id })
          }
        } catch (failure) {
          for (const snapshotId of taken) await snapshots.remove(snapshotId)
          throw failure
        }
        const group: Group = { id, volumeIds, snapshotIds: taken.sort(), createdAt }
        await groups.save(group)
        return described(group)
      })
    },

    DeleteVolumeGroupSnapshot: ({ group_snapshot_id, snapshot_ids }) =>
      state.exclusive(required('group_snapshot_id', group_snapshot_id), async () => {
        const group = await groups.find(group_snapshot_id)
        if (!group) return {}
        checkMembers(group, snapshot_ids)
        for (const id of group.snapshotIds) await snapshots.remove(id)
        await groups.remove(group.id)
        return {}
      }),

    async GetVolumeGroupSnapshot({ group_snapshot_id, snapshot_ids }) {
      const group = await groups.get(required('group_snapshot_id', group_snapshot_id))
      checkMembers(group, snapshot_ids)
      return described(group)
    },
  }
}
