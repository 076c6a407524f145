import type { BigIntStats } from 'node:fs'
import { chmod, lstat, mkdir } from 'node:fs/promises'
import { PlugstreamError } from '../errors.js'
import { directoriesBelow } from './task-paths.js'

const privateMode = 0o700

/**
 * Makes `directory` and what is missing above it, for its owner alone; what is there below `stateDir` and is wider is tightened.
 * A symbolic link below `stateDir` is never followed: who could place it could have files removed elsewhere.
 *
 * @throws ERR_SOCKET where something else is in the place of a directory, or the system refuses.
 */
export async function makePrivateDirectory(stateDir: string, directory: string): Promise<void> {
  try {
    await mkdir(stateDir, { recursive: true, mode: privateMode })
    for (const path of directoriesBelow(stateDir, directory)) {
      await mkdir(path, privateMode).catch(unless('EEXIST'))
      const found = await lstat(path, { bigint: true })
      if (!found.isDirectory()) {
        throw new PlugstreamError('ERR_SOCKET', `${path} is ${whatIs(found)}; a directory belongs there`, {
          details: { path },
        })
      }
      if ((Number(found.mode) & 0o777) !== privateMode) await chmod(path, privateMode)
    }
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_SOCKET', `making ${directory}`)
  }
}

/** Whether `directory` and all above it up to `stateDir` are real directories. */
export async function isOwnDirectory(stateDir: string, directory: string): Promise<boolean> {
  for (const path of directoriesBelow(stateDir, directory)) {
    const found = await statOf(path)
    if (!found?.isDirectory()) return false
  }
  return true
}

/** What is at a path, links not followed; undefined where nothing is. */
export async function statOf(path: string): Promise<BigIntStats | undefined> {
  return (await lstat(path, { bigint: true }).catch(unless('ENOENT', 'ENOTDIR'))) ?? undefined
}

/** A handler that lets failures of the named codes pass. */
export function unless(...codes: readonly string[]): (failure: unknown) => void {
  return (failure) => {
    if (!codes.includes((failure as NodeJS.ErrnoException).code ?? '')) throw failure
  }
}

export function whatIs(found: BigIntStats): string {
  if (found.isSymbolicLink()) return 'a symbolic link'
  if (found.isDirectory()) return 'a directory'
  return found.isSocket() ? 'a socket' : 'a file'
}
