import { mkdir, statfs } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { detach, isAttached, type Attach } from './attach.js'
import { checkCapability, required } from './checks.js'
import type { Volumes } from './volumes.js'

/** The Node half: volumes are attached at the paths they are asked for at, and measured. */
export function node(
  volumes: Volumes,
  attach: Attach,
  nodeId: string,
  topology: Record<string, string>,
): NonNullable<CsiServices['node']> {
  async function use(id: string, path: string, readonly: boolean): Promise<void> {
    const volume = await volumes.get(id)
    if (await isAttached(volumes.dataPath(id), path)) {
      if (volume.uses[path]?.readonly === readonly) return
      throw status('ALREADY_EXISTS', `volume ${id} is at ${path} with other access`)
    }
    // On record first: what was done and is not on record could not be undone later.
    await volumes.save({ ...volume, uses: { ...volume.uses, [path]: { readonly } } })
    await attach.attach(volumes.dataPath(id), path, readonly)
  }

  /** Whatever is at the path and is not this volume is left alone. */
  async function free(id: string, path: string): Promise<boolean> {
    const volume = await volumes.find(id)
    if (!volume?.uses[path]) return false
    await detach(volumes.dataPath(id), path)
    const { [path]: _freed, ...uses } = volume.uses
    await volumes.save({ ...volume, uses })
    return true
  }

  return {
    NodeGetCapabilities: () => ({
      capabilities: [{ rpc: { type: 'STAGE_UNSTAGE_VOLUME' } }, { rpc: { type: 'GET_VOLUME_STATS' } }],
    }),

    NodeGetInfo: () => ({ node_id: nodeId, accessible_topology: { segments: topology } }),

    NodeStageVolume: ({ volume_id, staging_target_path, volume_capability }) =>
      volumes.exclusive(required('volume_id', volume_id), async () => {
        checkCapability(volume_capability)
        await use(volume_id, required('staging_target_path', staging_target_path), false)
        return {}
      }),

    NodeUnstageVolume: ({ volume_id, staging_target_path }) =>
      volumes.exclusive(required('volume_id', volume_id), async () => {
        const freed = await free(volume_id, required('staging_target_path', staging_target_path))
        if (freed) await mkdir(staging_target_path, { recursive: true }) // the directory is the caller's, and stays
        return {}
      }),

    NodePublishVolume: ({ volume_id, staging_target_path, target_path, volume_capability, readonly }) =>
      volumes.exclusive(required('volume_id', volume_id), async () => {
        checkCapability(volume_capability)
        await volumes.get(volume_id)
        if (!(await isAttached(volumes.dataPath(volume_id), staging_target_path))) {
          throw status(
            'FAILED_PRECONDITION',
            `volume ${volume_id} is not staged at ${staging_target_path || 'any path'}`,
          )
        }
        if (readonly && attach.mode !== 'bind mounts') {
          throw status('INVALID_ARGUMENT', `${attach.mode} cannot make a volume read-only`)
        }
        await use(volume_id, required('target_path', target_path), readonly)
        return {}
      }),

    NodeUnpublishVolume: ({ volume_id, target_path }) =>
      volumes.exclusive(required('volume_id', volume_id), async () => {
        await free(volume_id, required('target_path', target_path))
        return {}
      }),

    async NodeGetVolumeStats({ volume_id, volume_path }) {
      await volumes.get(required('volume_id', volume_id))
      if (!(await isAttached(volumes.dataPath(volume_id), required('volume_path', volume_path)))) {
        throw status('NOT_FOUND', `volume ${volume_id} is not at ${volume_path}`)
      }
      const { blocks, bfree, bavail, bsize } = await statfs(volume_path, { bigint: true })
      const bytes = (count: bigint): string => String(count * bsize)
      const usage = { total: bytes(blocks), available: bytes(bavail), used: bytes(blocks - bfree) }
      return { usage: [{ unit: 'BYTES', ...usage }] }
    },
  }
}
