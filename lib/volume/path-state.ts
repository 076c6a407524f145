import { isAbsolute } from 'node:path/posix'
import { pathLookMs } from '../defaults.js'
import { abortedError, invalidOption, PlugstreamError } from '../errors.js'
import { deadCodes, PathLook, type Found } from './path-look.js'

/**
 * What a path is. `missing`: nothing is there, nor can be. `stale`: its file system is dead and says so (FUSE without its daemon, NFS
 * without its export). `hung`: it does not answer. `denied`: this process may not look.
 */
export type PathState = 'directory' | 'file' | 'block' | 'symlink' | 'other' | 'missing' | 'stale' | 'hung' | 'denied'

const stateByCode = new Map<string | undefined, PathState>([
  ...['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].map((code) => [code, 'missing'] as const),
  ...['EACCES', 'EPERM'].map((code) => [code, 'denied'] as const),
  ...deadCodes.map((code) => [code, 'stale'] as const),
])

const words: Readonly<Record<Exclude<Found['kind'], undefined>, string>> = {
  directory: 'a directory',
  file: 'a file',
  block: 'a block device',
  symlink: 'a symbolic link',
  other: 'neither directory, file, block device nor symbolic link',
}

/** As many processes as this look at a time. More would only be in each other's way, and what is stuck costs 40 MB each. */
const lookLimit = 8

/** A process that was killed is gone in a few ms, unless the kernel keeps it, and this is the patience with it. */
const reapMs = 250

/** The looks that are not gone. They are processes of this process, so that everybody in it shares them. */
const looks = new Map<string, PathLook>()

const longestTimeoutMs = 2 ** 31 - 1

/**
 * Looks at a path by a child process: a look at a dead NFS or FUSE mount may never come back, and in this process it would take one of
 * libuv's four threads with it, which are SQLite's too.
 *
 * A child that does not answer is killed and not waited for. Where the kernel does not let go of it, it stays until the file system
 * answers or is unmounted. It does not keep this process alive, and meanwhile the path is `hung` at once, without another child.
 *
 * @param path absolute; a symbolic link at its end is not followed.
 * @param options `timeoutMs` is for the look itself, by default 5_000; one at a time looks at a path, and eight over all.
 * @returns what was found by a look that began after the call, and that in words: `ENOTCONN: socket is not connected, lstat '…'`.
 * @throws ERR_OPTION_INVALID, ERR_ABORTED, and ERR_MOUNT where it cannot be told: no process could be had, which passes
 * (`retryable`), or the error says nothing about the path.
 * @example
 * const { state, description } = await pathState('/state/csi/staging/default/vol-1')
 * if (state === 'stale' || state === 'hung') console.error(description)
 */
export async function pathState(
  path: string,
  options: { signal?: AbortSignal; timeoutMs?: number } = {},
): Promise<{ state: PathState; description: string }> {
  const { signal, timeoutMs = pathLookMs } = options
  if (!isAbsolute(path) || path.includes('\0')) throw invalidOption('path', path, 'an absolute path')
  if (!(timeoutMs > 0 && timeoutMs <= longestTimeoutMs))
    throw invalidOption('timeoutMs', timeoutMs, `a number of ms up to ${longestTimeoutMs}`)
  for (;;) {
    if (signal?.aborted) throw aborted(path, signal)
    const same = looks.get(path)
    if (!same && looks.size < lookLimit) return stateOf(path, await lookAt(path, timeoutMs, signal), timeoutMs)
    // Not joined: what a look found that began before may have changed since.
    const before = same ? [same] : [...looks.values()]
    const first = Promise.race(before.map(({ silent, gone, over }) => (silent ? gone : over)))
    const patienceMs = before.every(({ silent }) => silent) ? reapMs : undefined
    if ((await within(patienceMs, first, signal)) || signal?.aborted) continue
    if (same) return { state: 'hung', description: 'an earlier look has not come back yet' }
    throw new PlugstreamError('ERR_MOUNT', `not looking at ${path}: ${lookLimit} looks have not come back yet`, {
      retryable: true,
    })
  }
}

async function lookAt(path: string, timeoutMs: number, signal?: AbortSignal): Promise<Found | undefined> {
  let look: PathLook
  try {
    look = new PathLook(path, timeoutMs)
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_MOUNT', `looking at ${path}`)
  }
  looks.set(path, look)
  void look.gone.then(() => looks.delete(path))
  const leave = (): void => signal && look.end(aborted(path, signal))
  signal?.addEventListener('abort', leave)
  try {
    return await look.found
  } finally {
    signal?.removeEventListener('abort', leave)
  }
}

function stateOf(path: string, found: Found | undefined, timeoutMs: number): { state: PathState; description: string } {
  if (!found) return { state: 'hung', description: `no answer within ${timeoutMs} ms` }
  const { kind, code, message = '' } = found
  if (kind && code === undefined) return { state: kind, description: words[kind] }
  const state = stateByCode.get(code)
  if (!state) throw new PlugstreamError('ERR_MOUNT', `looking at ${path}: ${message}`)
  return { state, description: message }
}

const aborted = (path: string, signal: AbortSignal): PlugstreamError => abortedError(`looking at ${path}`, signal)

/** Whether `event` came before `patienceMs` were over, if there is such a limit, and before the signal was aborted. */
async function within(patienceMs: number | undefined, event: Promise<void>, signal?: AbortSignal): Promise<boolean> {
  let leave: () => void = () => undefined
  const left = new Promise<false>((resolve) => (leave = () => resolve(false)))
  const timer = patienceMs === undefined ? undefined : setTimeout(leave, patienceMs)
  signal?.addEventListener('abort', leave)
  try {
    return await Promise.race([event.then(() => true), left])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}
