import { readFileSync } from 'node:fs'
import { normalize } from 'node:path/posix'
import { PlugstreamError } from '../errors.js'

/** One line of /proc/self/mountinfo. */
export interface Mount {
  id: number
  /** The mount this one stands on. One that is not in the table lies outside of this process's root. */
  parentId: number
  /** `major:minor` of the file system. Its subvolumes share it, whatever `stat` says of them. */
  device: string
  /**
   * What of the file system is mounted, `/` for all of it. Where that directory was removed since, the kernel adds `//deleted`, which
   * no path can have.
   */
  root: string
  path: string
  options: readonly string[]
  fsType: string
  /** As whoever mounted it called it: a device, `server:/export`, any word, nothing at all. */
  source: string
  superOptions: readonly string[]
}

/** Where the file is read in pieces, as it is from a page on, a mount that comes or goes meanwhile tears it: two reads must agree. */
const readTries = 10

/**
 * What is mounted where, as this process sees it. Touches no file system that is mounted.
 *
 * Paths are what the kernel has: no symbolic link, and bytes that are no UTF-8 as U+FFFD.
 *
 * @throws ERR_MOUNT where it cannot be read, `retryable` where it changes faster than that, and on other systems than Linux.
 * @example
 * const top = mountsAt(await readMountTable(), '/state/csi/staging/default/vol-1').at(-1)
 */
export async function readMountTable(): Promise<Mount[]> {
  if (process.platform !== 'linux') throw new PlugstreamError('ERR_MOUNT', 'mount tables are read on Linux only')
  const isOnePiece = (text: string): boolean => Buffer.byteLength(text) <= onePieceBytes
  // At once, and not by libuv's threads: it is memory of the kernel, and comes also where all of those hang in dead mounts.
  const read = () => Promise.resolve(readFileSync('/proc/self/mountinfo', 'utf8'))
  return parseMountTable(await readTwice(read, isOnePiece))
}

/** As much as the kernel gives in one piece, which is a page: then nothing can have changed within. */
const onePieceBytes = 4_000

/** What `read` gives twice in a row, or in one piece. */
export async function readTwice(
  read: () => Promise<string>,
  isOnePiece: (text: string) => boolean = () => false,
): Promise<string> {
  try {
    let before = await read()
    if (isOnePiece(before)) return before
    for (let tries = 1; tries < readTries; tries++) {
      const text = await read()
      if (text === before) return text
      before = text
    }
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_MOUNT', 'reading the mount table')
  }
  throw new PlugstreamError('ERR_MOUNT', `the mount table was different each of ${readTries} times it was read`, {
    retryable: true,
  })
}

/**
 * @param text what is in a mountinfo file.
 * @throws ERR_MOUNT for a line that is none of it: with a mount left out, what is mounted would look as if it were not.
 */
export function parseMountTable(text: string): Mount[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map(parseLine)
}

/** `id parent major:minor root path options [optional]… - type source superOptions`, one blank between two, which may be empty. */
function parseLine(line: string, index: number): Mount {
  const fields = line.split(' ')
  const [id = '', parentId = '', device = '', root = '', path = '', options = ''] = fields
  const dash = fields.indexOf('-', 6)
  const [fsType, source, ...superOptions] = fields.slice(dash + 1)
  if (!/^\d+ \d+ \d+:\d+$/.test(`${id} ${parentId} ${device}`) || dash < 0 || !fsType || source === undefined)
    throw new PlugstreamError(
      'ERR_MOUNT',
      `line ${index + 1} of the mount table is ${JSON.stringify(line.slice(0, 200))}`,
    )
  return {
    id: Number(id),
    parentId: Number(parentId),
    device,
    root: plain(root),
    path: plain(path),
    options: list(options),
    fsType: plain(fsType),
    source: plain(source),
    superOptions: list(superOptions.join(' ')),
  }
}

/** An escaped comma is part of an option. */
const list = (options: string): string[] => options.split(',').filter(Boolean).map(plain)

/** Undoes `\ooo`, each a byte, of which a character may have several. */
function plain(field: string): string {
  if (!field.includes('\\')) return field
  const bytes = Buffer.from(field, 'utf8')
    .toString('latin1')
    .replace(/\\([0-3][0-7]{2})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/**
 * What is mounted at `path`, one on the other, the topmost last. That is the way the kernel walks to it: what lies hidden, since
 * something was mounted over a directory above it later, is not there, and the order of the table tells nothing.
 *
 * @param path absolute and without symbolic links; nothing is looked up.
 */
export function mountsAt(mounts: readonly Mount[], path: string): Mount[] {
  const wanted = canonical(path)
  const ids = new Set(mounts.map(({ id }) => id))
  const onTheWay = mounts.filter((mount) => mount.path === wanted || isBelow(wanted, mount.path))
  const walked: Mount[] = []
  for (;;) {
    const here = walked.at(-1)
    const standsHere = onTheWay
      .filter((mount) => !walked.includes(mount))
      .filter(({ id, parentId }) => (here ? parentId === here.id : parentId === id || !ids.has(parentId)))
    // Of two on one mount the walk comes to the upper directory first, and never to the other.
    const [first] = standsHere.sort((a, b) => a.path.length - b.path.length)
    if (!first) break
    walked.push(first)
  }
  return walked.filter((mount) => mount.path === wanted)
}

/** All that is mounted below `path` and not at it, hidden or not, each after what it stands on: unmount in reverse. */
export function mountsBelow(mounts: readonly Mount[], path: string): Mount[] {
  const byId = new Map(mounts.map((mount) => [mount.id, mount]))
  const depth = (mount: Mount, known = 0): number => {
    const parent = byId.get(mount.parentId)
    return !parent || parent === mount || known > mounts.length ? known : depth(parent, known + 1)
  }
  const wanted = canonical(path)
  return mounts
    .filter((mount) => isBelow(mount.path, wanted))
    .map((mount) => ({ mount, depth: depth(mount) }))
    .sort((a, b) => a.depth - b.depth)
    .map(({ mount }) => mount)
}

/** Whether nothing can be written through it, be it for this mount alone or for all of the file system. */
export function isReadonly(mount: Mount): boolean {
  return mount.options.includes('ro') || mount.superOptions.includes('ro')
}

/**
 * Whether both show the same directory, as two bind mounts of it do. Not by the source, which may be any word. False where it was
 * removed: another one of that name may have been removed too.
 */
export function sameVolume(a: Mount, b: Mount): boolean {
  return a.device === b.device && a.root === b.root && !a.root.endsWith('//deleted')
}

const canonical = (path: string): string => normalize(`${path}/`).slice(0, -1) || '/'

const isBelow = (path: string, directory: string): boolean =>
  path !== directory && path.startsWith(directory === '/' ? '/' : `${directory}/`)
