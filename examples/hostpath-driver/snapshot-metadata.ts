import { open, type FileHandle } from 'node:fs/promises'
import { status, type CsiServices } from 'plugstream/csi'
import { required } from './checks.js'
import type { Driver } from './driver.js'
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
  async function* changed({ id, sizeBytes }: Snapshot, base: Snapshot | undefined, start: number, signal: AbortSignal) {
    await using file = await open(state.snapshotData(id))
    await using baseFile = base ? await open(state.snapshotData(base.id)) : undefined
    for (let offset = start - (start % blockBytes); offset < Number(sizeBytes); offset += blockBytes) {
      signal.throwIfAborted()
      const block = await read(file, offset)
      const before = baseFile ? await read(baseFile, offset) : Buffer.alloc(blockBytes)
      const size = Math.min(blockBytes, Number(sizeBytes) - offset)
      if (!block.equals(before)) yield { byte_offset: String(offset), size_bytes: String(size) }
    }
  }

  async function* messages(
    [target, base]: readonly [Snapshot, Snapshot?],
    { starting_offset, max_results: max }: { starting_offset: string; max_results: number },
    signal: AbortSignal,
  ) {
    const start = Number(starting_offset)
    if (max < 0) throw status('INVALID_ARGUMENT', 'max_results is negative')
    if (start < 0 || start >= Number(target.sizeBytes)) {
      throw status('OUT_OF_RANGE', `starting_offset is ${start}; the snapshot has ${target.sizeBytes} bytes`)
    }
    const message = (block_metadata: { byte_offset: string; size_bytes: string }[]) => ({
      block_metadata_type: 'VARIABLE_LENGTH' as const,
      volume_capacity_bytes: target.sizeBytes,
      block_metadata,
    })
    let blocks: { byte_offset: string; size_bytes: string }[] = []
    for await (const block of changed(target, base, start, signal)) {
      blocks.push(block)
      if (blocks.length < (max || usualResults)) continue
      yield message(blocks)
      blocks = []
    }
    if (blocks.length > 0) yield message(blocks)
  }

  return {
    async *GetMetadataAllocated(request, { signal }) {
      yield* messages([await find('snapshot_id', request.snapshot_id)], request, signal)
    },

    async *GetMetadataDelta(request, { signal }) {
      const base = await find('base_snapshot_id', request.base_snapshot_id)
      const target = await find('target_snapshot_id', request.target_snapshot_id)
      if (base.volumeId !== target.volumeId) throw status('INVALID_ARGUMENT', 'the snapshots are of different volumes')
      yield* messages([target, base], request, signal)
    },
  }
}

/** What is beyond the end of a file counts as zeros. */
async function read(file: FileHandle, position: number): Promise<Buffer> {
  const buffer = Buffer.alloc(blockBytes)
  await file.read({ buffer, position })
  return buffer
}
