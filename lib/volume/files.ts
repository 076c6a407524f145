import { readFileSync, rmdirSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { PlugstreamError } from '../errors.js'
import { mountError } from './errors.js'
import { readMountTable } from './mount-table.js'
import { pathState } from './path-state.js'
import type { VolumeFiles } from './ports.js'

/** Bit 21 of a process's capabilities: it may mount. */
const capSysAdmin = 1n << 21n

/** The machine's own. */
export function volumeFiles(): VolumeFiles {
  return {
    expectsMounts: mayMount(),
    mounts: process.platform === 'linux' ? readMountTable : () => Promise.resolve(undefined),
    makeDirectory,
    removeIfEmpty,
    look: (path, signal) => pathState(path, { signal }),
  }
}

/**
 * Nothing is looked up at `path` itself, where a dead mount may be: making a directory that is there fails without that.
 */
async function makeDirectory(root: string, path: string): Promise<string> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const [realRoot, directory] = await Promise.all([realpath(root), realpath(dirname(path))])
    // Plugins write below the root, and could lead the host out of it.
    if (directory !== realRoot && !directory.startsWith(`${realRoot}/`))
      throw mountError(`${dirname(path)} leads to ${directory}, which is not below ${root}`, path)
    await mkdir(path, 0o700).catch((failure: unknown) => {
      if ((failure as NodeJS.ErrnoException).code !== 'EEXIST') throw failure
    })
    return join(directory, basename(path))
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_MOUNT', `making ${path}`, { details: { path } })
  }
}

/** At once, so that nobody makes use of it meanwhile. What is mounted is busy, and its file system is not asked. */
function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // It is not empty, or not there: either way it is not for us to remove.
  }
}

function mayMount(): boolean {
  try {
    const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    return (BigInt(`0x${effective}`) & capSysAdmin) !== 0n
  } catch {
    return false // no Linux
  }
}
