import { statfs } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { checkCapability, objection, required } from './checks.js'
import { Volumes, type Volume } from './volumes.js'

const defaultCapacityBytes = 1n << 30n

/** The Controller half: volumes are made, deleted and listed. */
export function controller(
  volumes: Volumes,
  dataDir: string,
  topology: Record<string, string>,
): NonNullable<CsiServices['controller']> {
  const described = ({ id, capacityBytes }: Volume) => ({
    volume_id: id,
    capacity_bytes: capacityBytes,
    accessible_topology: [{ segments: topology }],
  })

  return {
    ControllerGetCapabilities: () => ({
      capabilities: [
        { rpc: { type: 'CREATE_DELETE_VOLUME' } },
        { rpc: { type: 'LIST_VOLUMES' } },
        { rpc: { type: 'GET_CAPACITY' } },
      ],
    }),

    CreateVolume({ name, volume_capabilities, capacity_range, volume_content_source }) {
      const id = Volumes.idOf(required('name', name))
      for (const capability of required('volume_capabilities', volume_capabilities)) checkCapability(capability)
      if (volume_content_source) throw status('INVALID_ARGUMENT', 'volumes cannot be made from others')
      const atLeast = BigInt(capacity_range?.required_bytes ?? 0)
      const atMost = BigInt(capacity_range?.limit_bytes ?? 0) || undefined // 0: no limit
      if (atLeast < 0n || (atMost !== undefined && atMost < atLeast)) {
        throw status('OUT_OF_RANGE', `no volume has at least ${atLeast} and at most ${atMost} bytes`)
      }
      return volumes.exclusive(id, async () => {
        const existing = await volumes.find(id)
        const usual = atMost !== undefined && atMost < defaultCapacityBytes ? atMost : defaultCapacityBytes
        const volume = existing ?? { id, name, capacityBytes: String(atLeast || usual), uses: {} }
        const capacityBytes = BigInt(volume.capacityBytes)
        if (capacityBytes < atLeast || (atMost !== undefined && capacityBytes > atMost)) {
          throw status('ALREADY_EXISTS', `there is a volume ${name} of ${capacityBytes} bytes`)
        }
        if (!existing) await volumes.save(volume)
        return { volume: described(volume) }
      })
    },

    DeleteVolume: ({ volume_id }) =>
      volumes.exclusive(required('volume_id', volume_id), async () => {
        const volume = await volumes.find(volume_id)
        if (!volume) return {}
        if (await volumes.isInUse(volume)) throw status('FAILED_PRECONDITION', `volume ${volume_id} is in use`)
        await volumes.remove(volume_id)
        return {}
      }),

    async ListVolumes({ max_entries, starting_token }) {
      if (max_entries < 0) throw status('INVALID_ARGUMENT', 'max_entries is negative')
      if (starting_token && !starting_token.startsWith('vol-'))
        throw status('ABORTED', 'starting_token is not from here')
      // The token is the id that comes next, so that a page begins where it should also when volumes came or went.
      const left = (await volumes.list()).filter(({ id }) => id >= starting_token)
      const page = left.slice(0, max_entries || left.length)
      return { entries: page.map((volume) => ({ volume: described(volume) })), next_token: left[page.length]?.id ?? '' }
    },

    async GetCapacity() {
      const { bavail, bsize } = await statfs(dataDir, { bigint: true })
      return { available_capacity: String(bavail * bsize) }
    },

    async ValidateVolumeCapabilities({ volume_id, volume_capabilities }) {
      await volumes.get(required('volume_id', volume_id))
      const message = required('volume_capabilities', volume_capabilities).map(objection).find(Boolean)
      return message ? { message } : { confirmed: { volume_capabilities } }
    },
  }
}
