import { open, type FileHandle } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { required } from './checks.js'
import type { Driver } from './context.js'
import type { Snapshot } from './state.js'

const blockBytes = 65_536
const usualResults = 256

/** Which blocks of a snapshot are in use, or differ from an earlier one: found by reading them. */
export function snapshotMetadata({ state }: Driver): NonNullable<CsiServices['snapshotMetadata']> {
  async function find(field: string, id: string): Promise<Snapshot> {
    const snapshot = await state.snapshots.get(required(field, id))
    if (snapshot.kind !== 'block') throw status('INVALID_ARGUMENT', `${id} is not of a block volume`)
    return snapshot
  }

  /** One by one, the offsets of blocks that are not as in the base; without one, those that are not all zero. */
  async function* changed({ id, sizeBytes }: Snapshot, base: Snapshot | undefined, start: number) {
    await using file = await open(state.snapshotData(id))
    await using baseFile = base ? await open(state.snapshotData(base.id)) : undefined
    for (let offset = start - (start % blockBytes); offset < Number(sizeBytes); offset += blockBytes) {
      const block = await read(file, offset)
      const before = baseFile ? await read(baseFile, offset) : Buffer.alloc(blockBytes)
      if (!block.equals(before)) yield { byte_offset: String(offset), size_bytes: String(blockBytes) }
    }
  }

  async function* messages(target: Snapshot, base: Snapshot | undefined, starting_offset: string, max: number) {
    const start = Number(starting_offset)
    if (max < 0) throw status('INVALID_ARGUMENT', 'max_results is negative')
    if (start < 0 || start >= Number(target.sizeBytes)) {
      throw status('OUT_OF_RANGE', `starting_offset is ${start}; the snapshot has ${target.sizeBytes} bytes`)
    }
    const message = (block_metadata: { byte_offset: string; size_bytes: string }[]) => ({
      block_metadata_type: 'FIXED_LENGTH' as const,
      volume_capacity_bytes: target.sizeBytes,
      block_metadata,
    })
    let blocks: { byte_offset: string; size_bytes: string }[] = []
    for await (const block of changed(target, base, start)) {
      blocks.push(block)
      if (blocks.length < (max || usualResults)) continue
      yield message(blocks)
      blocks = []
    }
    if (blocks.length > 0) yield message(blocks)
  }

  return {
    async *GetMetadataAllocated({ snapshot_id, starting_offset, max_results }) {
      yield* messages(await find('snapshot_id', snapshot_id), undefined, starting_offset, max_results)
    },

    async *GetMetadataDelta({ base_snapshot_id, target_snapshot_id, starting_offset, max_results }) {
      const base = await find('base_snapshot_id', base_snapshot_id)
      const target = await find('target_snapshot_id', target_snapshot_id)
      if (base.volumeId !== target.volumeId) throw status('INVALID_ARGUMENT', 'the snapshots are of different volumes')
      yield* messages(target, base, starting_offset, max_results)
    },
  }
}

/** What is beyond the end of a file counts as zeros. */
async function read(file: FileHandle, position: number): Promise<Buffer> {
  const buffer = Buffer.alloc(blockBytes)
  await file.read({ buffer, position })
  return buffer
}
