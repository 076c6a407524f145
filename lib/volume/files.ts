import { readFileSync, rmdirSync } from 'node:fs'
import { mkdir, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { bootId } from '../boot-id.js'
import { PlugstreamError } from '../errors.js'
import { mountError } from './errors.js'
import { readMountTable } from './mount-table.js'
import { pathState } from './path-state.js'
import type { VolumeFiles } from './ports.js'

/** Bit 21 of a process's capabilities: it may mount. */
const capSysAdmin = 1n << 21n

/** The machine's own. */
export function volumeFiles(): VolumeFiles {
  const roots = new Map<string, Promise<string>>()
  /** The root of a plugin does not move while it is in use. */
  const realRoot = (root: string): Promise<string> => {
    const real = roots.get(root) ?? mkdir(root, { recursive: true, mode: 0o700 }).then(() => realpath(root))
    roots.set(root, real)
    real.catch(() => roots.delete(root))
    return real
  }
  return {
    expectsMounts: mayMount(),
    bootId: bootId(),
    mounts: process.platform === 'linux' ? shared(readMountTable) : () => Promise.resolve(undefined),
    placeOf: (root, path) => placeOf(realRoot, root, path),
    makeDirectory: (root, path) => placeOf(realRoot, root, path).then(makeDirectory),
    isLink,
    removeIfEmpty,
    look: (path, signal) => pathState(path, { signal }),
  }
}

/** Nothing is looked up at `path` itself, where a dead mount may be. */
async function placeOf(realRootOf: (root: string) => Promise<string>, root: string, path: string): Promise<string> {
  const above = dirname(path)
  try {
    const realRoot = await realRootOf(root)
    // Plugins write below the root, and could lead the host out of it.
    const within = (real: string): string => {
      if (real === realRoot || real.startsWith(`${realRoot}/`)) return real
      throw mountError(`${above} leads to ${real}, which is not below ${root}`, path)
    }
    const there = await nearest(above, resolve(root))
    if (there) within(there.real)
    if (there?.at === above) return join(there.real, basename(path))
    await mkdir(above, { recursive: true, mode: 0o700 })
    return join(within(await realpath(above)), basename(path))
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_MOUNT', `making ${above}`, { details: { path } })
  }
}

/** The nearest directory that there is, going up from `at` to `root`, and where it is without symbolic links. */
async function nearest(at: string, root: string): Promise<{ at: string; real: string } | undefined> {
  try {
    return { at, real: await realpath(at) }
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'ENOENT') throw failure
    return at === root || at === '/' ? undefined : nearest(dirname(at), root)
  }
}

/** Making a directory that is there fails without a look at what is mounted on it. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, 0o700)
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'EEXIST') return
    throw PlugstreamError.from(failure, 'ERR_MOUNT', `making ${path}`, { details: { path } })
  }
}

/** By what the directory above says of it, which asks no file system that is mounted there. */
async function isLink(path: string): Promise<boolean> {
  try {
    const name = basename(path)
    return (await readdir(dirname(path), { withFileTypes: true })).some(
      (one) => one.name === name && one.isSymbolicLink(),
    )
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw PlugstreamError.from(failure, 'ERR_MOUNT', `reading ${dirname(path)}`, { details: { path } })
  }
}

/** Who asks in the same moment shares a read: with many volumes at once the table is long, and read for all of them. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined
  return () => {
    next ??= Promise.resolve().then(() => {
      next = undefined
      return read()
    })
    return next
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
