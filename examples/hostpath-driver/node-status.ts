import { access, constants, stat, statfs } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { boundsOf } from './capacity.js'
import { required } from './checks.js'
import type { Driver } from './driver.js'
import { growLoopDevices } from './loop.js'
import type { Volume } from './state.js'
import { Uses, type Use } from './uses.js'
import { problemsOf } from './volume-health.js'

/** How volumes and storage are on this node, and the part of growing that is the node's. */
export function nodeStatus(driver: Driver): NonNullable<CsiServices['node']> {
  const { state } = driver
  const uses = new Uses(driver)

  async function volumeAt(volume_id: string, volume_path: string): Promise<Volume> {
    required('volume_path', volume_path)
    const volume = await state.volumes.get(required('volume_id', volume_id))
    const use = await uses.at(volume, volume_path)
    if (!use) throw status('NOT_FOUND', `volume ${volume_id} is not at ${volume_path}`)
    return volume
  }

  return {
    async NodeGetVolumeStats({ volume_id, volume_path }) {
      const { id, kind, capacityBytes } = await volumeAt(volume_id, volume_path)
      if (kind === 'block') {
        const used = (await stat(state.volumeData(id))).blocks * 512
        const available = String(BigInt(capacityBytes) - BigInt(used))
        return { usage: [{ unit: 'BYTES', total: capacityBytes, used: String(used), available }] }
      }
      // A directory has all of its file system to itself, and is told of as such.
      const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(volume_path, { bigint: true })
      const usage = (unit: 'BYTES' | 'INODES', total: bigint, free: bigint, available: bigint, size: bigint) => ({
        unit,
        total: String(total * size),
        available: String(available * size),
        used: String((total - free) * size),
      })
      return { usage: [usage('BYTES', blocks, bfree, bavail, bsize), usage('INODES', files, ffree, ffree, 1n)] }
    },

    NodeExpandVolume: ({ volume_id, volume_path, capacity_range }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const { atLeast } = boundsOf(capacity_range)
        const { kind, capacityBytes } = await volumeAt(volume_id, volume_path)
        if (BigInt(capacityBytes) < atLeast) {
          throw status('OUT_OF_RANGE', `the controller has made volume ${volume_id} ${capacityBytes} bytes large`)
        }
        if (kind === 'block') await growLoopDevices(state.volumeData(volume_id))
        return { capacity_bytes: capacityBytes }
      }),

    async NodeGetVolumeHealth({ volume_id, volume_publish_path, staging_target_path }) {
      const volume = await state.volumes.get(required('volume_id', volume_id))
      const asked = [volume_publish_path, staging_target_path].filter(Boolean)
      const found = (await uses.list(volume)).filter(({ path }) => asked.length === 0 || asked.includes(path))
      const missing = asked.find((path) => !found.some((use) => use.path === path))
      if (missing) throw status('NOT_FOUND', `volume ${volume_id} is not at ${missing}`)
      const detached = async (use: Use) =>
        (await uses.isAttached(use, volume))
          ? []
          : [{ status: 'INACCESSIBLE' as const, reason: 'NotAttached', message: `it is gone from ${use.path}` }]
      const health_statuses = [...(await problemsOf(state, volume)), ...(await Promise.all(found.map(detached))).flat()]
      return { volume_health: { volume_id, health_statuses } }
    },

    async NodeGetStorageHealth() {
      try {
        await access(state.directory, constants.R_OK | constants.W_OK)
        const { bavail } = await statfs(state.directory)
        if (bavail > 0) return { backend_health: [] }
        const message = `there is no space left in ${state.directory}`
        return { backend_health: [{ status: 'STORAGE_DEGRADED' as const, reason: 'NoSpaceLeft', message }] }
      } catch (failure) {
        const { message } = failure as Error
        return { backend_health: [{ status: 'STORAGE_UNREACHABLE' as const, reason: 'StateDirUnusable', message }] }
      }
    },
  }
}
