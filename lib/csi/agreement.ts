import { PlugstreamError } from '../errors.js'
import type { CreateVolumeRequest, CreateVolumeResponse } from './messages/controller.js'
import type { CreateSnapshotRequest, SnapshotResponse } from './messages/snapshot.js'

/**
 * A volume that was to be made of something says of what it is made. The specification leaves that open; a driver that passes over the
 * source gives an empty volume for a copy, and nothing else would show it. @throws ERR_CSI_PROTOCOL.
 */
export function madeOfSource({ volumeContentSource: wanted }: CreateVolumeRequest, answer: CreateVolumeResponse): void {
  if (!wanted) return
  const { contentSource: made, volumeId } = answer.volume
  const idOf = (source: typeof wanted): string => (source.kind === 'volume' ? source.volumeId : source.snapshotId)
  if (made?.kind === wanted.kind && idOf(made) === idOf(wanted)) return
  const found = made ? `${made.kind} ${JSON.stringify(idOf(made))}` : 'nothing'
  throw new PlugstreamError(
    'ERR_CSI_PROTOCOL',
    `volume ${JSON.stringify(volumeId)} is made of ${found}, and was to be of ${wanted.kind} ${JSON.stringify(idOf(wanted))}`,
    { details: { field: 'volume.contentSource', volumeId } },
  )
}

/** A snapshot is of the volume it was to be of. @throws ERR_CSI_PROTOCOL. */
export function takenOfVolume({ sourceVolumeId: wanted }: CreateSnapshotRequest, { snapshot }: SnapshotResponse): void {
  const { sourceVolumeId, snapshotId } = snapshot
  if (sourceVolumeId === wanted) return
  throw new PlugstreamError(
    'ERR_CSI_PROTOCOL',
    `snapshot ${JSON.stringify(snapshotId)} is of volume ${JSON.stringify(sourceVolumeId)}, and was to be of ${JSON.stringify(wanted)}`,
    { details: { field: 'snapshot.sourceVolumeId', snapshotId } },
  )
}
