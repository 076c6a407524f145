import { watch, type FSWatcher } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { deafSocketStatIntervalMs, socketStatIntervalMs } from '../defaults.js'
import { seeSocket } from './socket-sight.js'
import type { SocketSight } from './socket.js'

/**
 * Tells what is seen at a socket's path: the present sight at once (though not in this call), then every change, until the function
 * given back is called; after that nothing is told and nothing is left open.
 *
 * Changes come from a watch on the socket's directory, or on the nearest one above it that exists. A watch goes deaf when its
 * directory is replaced, and some file systems have none, so a look every `statIntervalMs` (default: `socketStatIntervalMs`) stays
 * under it; where no watch can be had the looks come quicker.
 *
 * @example
 * const stop = watchSocket('/run/driver/csi.sock', (sight) => console.log(sight.kind))
 */
export function watchSocket(
  socketPath: string,
  listener: (sight: SocketSight) => void,
  init: { statIntervalMs?: number } = {},
): () => void {
  const watched = new SocketWatch(resolve(socketPath), listener, init.statIntervalMs ?? socketStatIntervalMs)
  watched.look()
  return () => watched.stop()
}

/**
 * Invariants: one look at a time, and one more if something happened meanwhile; a look follows every arming of the watch, so that
 * nothing falls between them; the watch is on the directory that `#armedOn` names, or every look arms it again.
 */
class SocketWatch {
  readonly #directory: string
  readonly #name: string
  #told = ''
  #looking = false
  #lookAgain = false
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  #watcher: FSWatcher | undefined
  #watchedPath: string | undefined
  /** Identity of the socket's directory when the watch was armed; null: to be armed. */
  #armedOn: string | undefined | null = null

  constructor(
    private readonly socketPath: string,
    private readonly listener: (sight: SocketSight) => void,
    private readonly statIntervalMs: number,
  ) {
    this.#directory = dirname(socketPath)
    this.#name = basename(socketPath)
  }

  look(): void {
    if (this.#looking) {
      this.#lookAgain = true
      return
    }
    this.#looking = true
    clearTimeout(this.#timer)
    void this.#lookOnce().finally(() => {
      this.#looking = false
      if (this.#stopped) return
      if (!this.#lookAgain) return
      this.#lookAgain = false
      this.look()
    })
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#watcher?.close()
    this.#watcher = undefined
  }

  async #lookOnce(): Promise<void> {
    const [sight, directory, link] = await Promise.all([
      seeSocket(this.socketPath),
      directoryIdentity(this.#directory),
      isLink(this.socketPath),
    ])
    if (this.#stopped) return
    if (directory !== this.#armedOn) {
      this.#arm()
      this.#armedOn = directory
      this.#lookAgain = true
    }
    // A watch further up hears when the directory comes, but nothing of what happens in it.
    const hears = this.#watchedPath === this.#directory || (this.#watcher !== undefined && directory === undefined)
    const pauseMs = hears && !link ? this.statIntervalMs : Math.min(this.statIntervalMs, deafSocketStatIntervalMs)
    this.#timer = setTimeout(() => {
      if (this.#watchedPath !== this.#directory) this.#armedOn = null
      this.look()
    }, pauseMs)
    this.#tell(sight)
  }

  #tell(sight: SocketSight): void {
    const seen = JSON.stringify(sight)
    if (seen === this.#told) return
    this.#told = seen
    this.listener(sight)
  }

  /** Watches the socket's directory; where that cannot be, the nearest one above it that can. */
  #arm(): void {
    this.#watcher?.close()
    let at = this.#directory
    let watcher = this.#tryWatch(at)
    while (!watcher && at !== dirname(at)) {
      at = dirname(at)
      watcher = this.#tryWatch(at)
    }
    // Down again: what is missing may have come before the watch above it was armed.
    while (watcher && at !== this.#directory) {
      const below = join(at, this.#nextBelow(at))
      const lower = this.#tryWatch(below)
      if (!lower) break
      watcher.close()
      watcher = lower
      at = below
    }
    this.#watcher = watcher
    this.#watchedPath = watcher && at
  }

  #tryWatch(path: string): FSWatcher | undefined {
    try {
      const watcher = watch(path)
      watcher.on('change', (kind, name) => this.#heard(path, kind, name))
      watcher.on('error', () => (this.#watchedPath = undefined)) // the next look by the clock arms it again
      return watcher
    } catch {
      return undefined // not there, not allowed, or no watch left: the next one up, or the quick looks
    }
  }

  #heard(path: string, kind: string, name: string | Buffer | null): void {
    if (this.#stopped) return
    const self = name === basename(path)
    const next = path === this.#directory ? this.#name : this.#nextBelow(path)
    if (name !== null && !self && name !== next) return
    // The directory itself went or came: a watch on it is deaf from now on.
    if (path !== this.#directory || (self && kind === 'rename')) this.#armedOn = null
    this.look()
  }

  #nextBelow(path: string): string {
    return relative(path, this.#directory).split(sep)[0] ?? ''
  }
}

async function directoryIdentity(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path, { bigint: true })
    return `${found.dev}:${found.ino}:${found.birthtimeNs}`
  } catch {
    return undefined // the socket's own sight says what is wrong
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch {
    return false
  }
}
