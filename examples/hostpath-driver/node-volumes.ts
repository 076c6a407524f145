import { mkdir } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { checkKind, kindOf, required, requiredPath } from './checks.js'
import type { Driver } from './driver.js'
import { giveToGroup } from './mount-group.js'
import type { Volume } from './state.js'
import { Uses, type Access } from './uses.js'

const singleWriter = 'SINGLE_NODE_SINGLE_WRITER'

/** Volumes are staged at one path of the node, and from there published at others. */
export function nodeVolumes(driver: Driver): NonNullable<CsiServices['node']> {
  const { state, attach } = driver
  const uses = new Uses(driver)

  type Capability = Parameters<typeof kindOf>[0] & {
    mount?: { mount_flags: string[]; volume_mount_group: string } | null
  }
  function accessOf(capability: Capability | null, readonly: boolean): Access {
    return {
      readonly,
      accessMode: capability?.access_mode?.mode ?? '',
      mountFlags: capability?.mount?.mount_flags ?? [],
      mountGroup: capability?.mount?.volume_mount_group ?? '',
    }
  }

  function checkPossible({ readonly, mountFlags }: Access): void {
    if (attach.mode === 'bind mounts') return
    if (readonly) throw status('INVALID_ARGUMENT', `${attach.mode} cannot make a volume read-only`)
    if (mountFlags.length > 0) throw status('INVALID_ARGUMENT', `${attach.mode} cannot heed mount_flags`)
  }

  /** With a single writer, there is one path that the volume is published at. */
  async function checkWriters(volume: Volume, path: string, { accessMode }: Access): Promise<void> {
    const others = (await uses.attached(volume)).filter((use) => use.as === 'published' && use.path !== path)
    const [other] = others
    if (other && [accessMode, other.access.accessMode].includes(singleWriter)) {
      throw status('FAILED_PRECONDITION', `volume ${volume.id} has its single writer at ${other.path}`)
    }
  }

  return {
    NodeStageVolume: ({ volume_id, staging_target_path, volume_capability }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const path = requiredPath('staging_target_path', staging_target_path)
        const kind = kindOf(volume_capability, attach.block)
        const volume = await state.volumes.get(volume_id)
        checkKind(volume, kind)
        const access = accessOf(volume_capability, false)
        checkPossible(access)
        const isNew = (await uses.at(volume, path)) === undefined
        if (isNew && access.mountGroup) await giveToGroup(state.volumeData(volume_id), access.mountGroup)
        await uses.begin(volume, { path, as: 'staged', access })
        return {}
      }),

    NodeUnstageVolume: ({ volume_id, staging_target_path }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const path = requiredPath('staging_target_path', staging_target_path)
        const ended = await uses.end(await state.volumes.get(volume_id), path)
        if (ended) await mkdir(path, { recursive: true }) // the directory is the caller's, and stays
        return {}
      }),

    NodePublishVolume: (request) =>
      state.exclusive(required('volume_id', request.volume_id), async () => {
        const { volume_id, staging_target_path, volume_capability, publish_context } = request
        const path = requiredPath('target_path', request.target_path)
        const kind = kindOf(volume_capability, attach.block)
        const volume = await state.volumes.get(volume_id)
        checkKind(volume, kind)
        const staged = await uses.at(volume, staging_target_path)
        if (staged?.as !== 'staged') {
          const where = staging_target_path || 'any path'
          throw status('FAILED_PRECONDITION', `volume ${volume_id} is not staged at ${where}`)
        }
        const readonly =
          request.readonly ||
          publish_context['readonly'] === 'true' ||
          volume_capability?.access_mode?.mode === 'SINGLE_NODE_READER_ONLY'
        const access = accessOf(volume_capability, readonly)
        checkPossible(access)
        await checkWriters(volume, path, access)
        await uses.begin(volume, { path, as: 'published', access })
        return {}
      }),

    NodeUnpublishVolume: ({ volume_id, target_path }) =>
      state.exclusive(required('volume_id', volume_id), async () => {
        const path = requiredPath('target_path', target_path)
        await uses.end(await state.volumes.get(volume_id), path)
        return {}
      }),
  }
}
