import { access, stat } from 'node:fs/promises'
import type { CsiServices } from 'plugstream/csi'
import { required } from './checks.js'
import type { Driver } from './driver.js'
import type { State, Volume } from './state.js'

export interface Problem {
  status: 'INACCESSIBLE' | 'DATA_LOSS'
  reason: string
  message: string
}

/** What is wrong with the data of a volume: what is on the disk is compared with what is on record. */
export async function problemsOf(state: State, { id, kind, capacityBytes }: Volume): Promise<Problem[]> {
  const path = state.volumeData(id)
  try {
    const there = await stat(path)
    await access(path)
    if (kind === 'mount' ? !there.isDirectory() : !there.isFile()) {
      return [{ status: 'DATA_LOSS', reason: 'DataReplaced', message: `there is something else at ${path}` }]
    }
    if (kind === 'block' && BigInt(there.size) < BigInt(capacityBytes)) {
      const message = `${path} has ${there.size} bytes of ${capacityBytes}`
      return [{ status: 'DATA_LOSS', reason: 'DataTruncated', message }]
    }
    return []
  } catch (failure) {
    const { code, message } = failure as NodeJS.ErrnoException
    return code === 'ENOENT'
      ? [{ status: 'DATA_LOSS', reason: 'DataMissing', message }]
      : [{ status: 'INACCESSIBLE', reason: 'DataUnreadable', message }]
  }
}

export function volumeHealth({ state }: Driver): NonNullable<CsiServices['controller']> {
  const healthOf = async (volume: Volume) => ({
    volume_id: volume.id,
    health_statuses: await problemsOf(state, volume),
  })
  return {
    async ControllerGetVolumeHealth({ volume_id }) {
      return { volume_health: await healthOf(await state.volumes.get(required('volume_id', volume_id))) }
    },

    async ControllerListVolumeHealth(request) {
      const { records, next_token } = state.volumes.page(await state.volumes.list(), request)
      return { entries: await Promise.all(records.map(healthOf)), next_token }
    },
  }
}
