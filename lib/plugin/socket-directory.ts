import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { deafSocketStatIntervalMs, socketStatIntervalMs } from '../defaults.js'
import { messageOf } from '../errors.js'
import { DirectoryEar, directoryIdentity } from './directory-ear.js'
import { LookLoop } from './look-loop.js'
import { codeOf, isAbsence, seeSocket } from './socket-sight.js'
import type { DirectorySight } from './socket.js'

/**
 * Tells which sockets are in a directory and in the directories right below it: all of them at once (though not in this call), then
 * after every change, until the function given back is called. Names that begin with a dot and files that are no sockets do not count; a
 * link to a socket does; another file system that is mounted below is left alone. A directory that is missing has no sockets.
 *
 * Changes come from watches on the directories. Since those go deaf, or may not be had, a look every `statIntervalMs` stays under them.
 *
 * @example
 * const stop = watchSockets('/var/lib/kubelet/plugins_registry', ({ sockets }) => console.log(sockets.length))
 */
export function watchSockets(
  directory: string,
  listener: (sight: DirectorySight) => void,
  init: { statIntervalMs?: number } = {},
): () => void {
  const watched = new SocketsWatch(resolve(directory), listener, init.statIntervalMs ?? socketStatIntervalMs)
  watched.start()
  return () => watched.stop()
}

/** Invariant: a look follows every arming of an ear, so that nothing falls between them. */
class SocketsWatch {
  readonly #ears = new Map<string, DirectoryEar>()
  readonly #loop = new LookLoop((byClock) => this.#look(byClock))
  #told = ''

  constructor(
    private readonly directory: string,
    private readonly listener: (sight: DirectorySight) => void,
    private readonly statIntervalMs: number,
  ) {}

  start(): void {
    this.#loop.ask()
  }

  stop(): void {
    this.#loop.stop()
    for (const ear of this.#ears.values()) ear.stop()
  }

  async #look(byClock: boolean): Promise<number> {
    const identity = await directoryIdentity(this.directory)
    const found = await scan(this.directory)
    if (this.#loop.stopped) return 0
    const isHeard = this.#listen(new Map([[this.directory, identity], ...found.below]), byClock)
    this.#tell(found.sight)
    return isHeard && !found.hasLinks ? this.statIntervalMs : Math.min(this.statIntervalMs, deafSocketStatIntervalMs)
  }

  /** Has an ear on each of these directories, and on no other. */
  #listen(directories: ReadonlyMap<string, string | undefined>, byClock: boolean): boolean {
    for (const [path, ear] of this.#ears) {
      if (directories.has(path)) continue
      ear.stop()
      this.#ears.delete(path)
    }
    let isHeard = true
    for (const [path, identity] of directories) {
      const ear = this.#ears.get(path) ?? new DirectoryEar(path, () => this.#loop.ask())
      this.#ears.set(path, ear)
      if (byClock) ear.doubt()
      if (ear.arm(identity)) this.#loop.ask()
      isHeard &&= ear.hears(identity)
    }
    return isHeard
  }

  #tell(sight: DirectorySight): void {
    const seen = JSON.stringify(sight)
    if (seen === this.#told) return
    this.#told = seen
    this.listener(sight)
  }
}

interface Scan {
  sight: DirectorySight
  /** The directories right below, and their identities. */
  below: readonly (readonly [string, string | undefined])[]
  /** What becomes of the file behind a link, no watch here tells. */
  hasLinks: boolean
}

const nothing: Scan = { sight: { sockets: [], unseen: [] }, below: [], hasLinks: false }

/** @param device of the directory above, for one that is below: another file system is left alone. */
async function scan(directory: string, device?: bigint): Promise<Scan> {
  try {
    const { dev } = await stat(directory, { bigint: true })
    if (device !== undefined && dev !== device) return nothing
    const entries = (await readdir(directory, { withFileTypes: true })).filter(({ name }) => !name.startsWith('.'))
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    return joined(
      await Promise.all(
        entries.map(async (entry) => {
          const path = join(directory, entry.name)
          if (!entry.isDirectory()) return look(path, entry)
          return device === undefined ? scanBelow(path, dev) : nothing
        }),
      ),
    )
  } catch (failure) {
    return isAbsence(codeOf(failure)) ? nothing : unseen(directory, messageOf(failure))
  }
}

async function scanBelow(directory: string, device: bigint): Promise<Scan> {
  const identity = await directoryIdentity(directory)
  const found = await scan(directory, device)
  return found === nothing ? nothing : { ...found, below: [[directory, identity]] }
}

async function look(path: string, entry: Dirent): Promise<Scan> {
  if (!entry.isSocket() && !entry.isSymbolicLink()) return nothing
  const seen = await seeSocket(path)
  if (seen.kind === 'denied') return unseen(path, seen.description)
  const sockets = seen.kind === 'socket' ? [{ socketPath: path, identity: seen.identity }] : []
  return { ...nothing, sight: { sockets, unseen: [] }, hasLinks: entry.isSymbolicLink() }
}

function unseen(path: string, description: string): Scan {
  return { ...nothing, sight: { sockets: [], unseen: [{ path, description }] } }
}

function joined(scans: readonly Scan[]): Scan {
  return {
    sight: {
      sockets: scans.flatMap(({ sight }) => sight.sockets),
      unseen: scans.flatMap(({ sight }) => sight.unseen),
    },
    below: scans.flatMap(({ below }) => below),
    hasLinks: scans.some(({ hasLinks }) => hasLinks),
  }
}
