// The bytes of volumes and snapshots: a directory, or one sparse file for a block volume.
import { chmod, mkdir, rm, truncate, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { run } from './run.js'
import type { Kind } from './state.js'

export async function makeData(path: string, kind: Kind, capacityBytes: bigint): Promise<void> {
  await makeRoom(path)
  if (kind === 'mount') return mkdir(path, { mode: 0o700 }).then(() => undefined)
  await writeFile(path, '', { mode: 0o600 })
  await growFile(path, capacityBytes)
}

/** A full copy, with owners, modes and holes as they are. */
export async function copyData(from: string, to: string): Promise<void> {
  await makeRoom(to)
  await run('cp', '-a', from, to)
}

export async function growFile(path: string, capacityBytes: bigint): Promise<void> {
  await truncate(path, Number(capacityBytes))
}

/** The one parameter of a volume that can be changed: who may use its files, as three or four octal digits. */
export async function setMode(path: string, { mode }: Record<string, string>): Promise<void> {
  if (mode !== undefined) await chmod(path, parseInt(mode, 8))
}

/** Takes away what an operation that was cut off has left. */
async function makeRoom(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rm(path, { recursive: true, force: true })
}
