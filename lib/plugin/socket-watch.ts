import { lstat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { deafSocketStatIntervalMs, socketStatIntervalMs } from '../defaults.js'
import { DirectoryEar, directoryIdentity } from './directory-ear.js'
import { LookLoop } from './look-loop.js'
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
  watched.start()
  return () => watched.stop()
}

/** Invariant: a look follows every arming of the ear, so that nothing falls between them. */
class SocketWatch {
  readonly #directory: string
  readonly #ear: DirectoryEar
  readonly #loop = new LookLoop((byClock) => this.#look(byClock))
  #told = ''

  constructor(
    private readonly socketPath: string,
    private readonly listener: (sight: SocketSight) => void,
    private readonly statIntervalMs: number,
  ) {
    this.#directory = dirname(socketPath)
    this.#ear = new DirectoryEar(this.#directory, () => this.#loop.ask(), basename(socketPath))
  }

  start(): void {
    this.#loop.ask()
  }

  stop(): void {
    this.#loop.stop()
    this.#ear.stop()
  }

  async #look(byClock: boolean): Promise<number> {
    if (byClock) this.#ear.doubt()
    const [sight, directory, link] = await Promise.all([
      seeSocket(this.socketPath),
      directoryIdentity(this.#directory),
      isLink(this.socketPath),
    ])
    if (this.#loop.stopped) return 0
    if (this.#ear.arm(directory)) this.#loop.ask()
    this.#tell(sight)
    const isHeard = this.#ear.hears(directory) && !link
    return isHeard ? this.statIntervalMs : Math.min(this.statIntervalMs, deafSocketStatIntervalMs)
  }

  #tell(sight: SocketSight): void {
    const seen = JSON.stringify(sight)
    if (seen === this.#told) return
    this.#told = seen
    this.listener(sight)
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch {
    return false
  }
}
