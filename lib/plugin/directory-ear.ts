import { watch, type FSWatcher } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'

/**
 * Hears of changes in a directory through a watch on it, or on the nearest one above it that exists. A watch goes deaf when its directory
 * is replaced: who listens looks at the directory now and then, and `arm`s the ear with what it is.
 *
 * Invariant: the watch is on the directory that `#armedOn` names, or the next `arm` makes it anew.
 */
export class DirectoryEar {
  #stopped = false
  #watcher: FSWatcher | undefined
  #watchedPath: string | undefined
  /** Identity of the directory when the watch was armed; null: to be armed. */
  #armedOn: string | undefined | null = null

  /**
   * @param directory absolute.
   * @param only the one name in the directory that matters. Default: every name does.
   */
  constructor(
    private readonly directory: string,
    private readonly heard: () => void,
    private readonly only?: string,
  ) {}

  /** Arms it where the directory is another one by now. True: it did, and what happened before that was not heard. */
  arm(identity: string | undefined): boolean {
    if (this.#stopped || identity === this.#armedOn) return false
    this.#arm()
    this.#armedOn = identity
    return true
  }

  /** Whether whatever happens next will be heard. */
  hears(identity: string | undefined): boolean {
    // A watch further up hears when the directory comes, but nothing of what happens in it.
    return this.#watchedPath === this.directory || (this.#watcher !== undefined && identity === undefined)
  }

  /** Where the watch is not on the directory itself, the next `arm` tries again. */
  doubt(): void {
    if (this.#watchedPath !== this.directory) this.#armedOn = null
  }

  stop(): void {
    this.#stopped = true
    this.#watcher?.close()
    this.#watcher = undefined
  }

  /** Watches the directory; where that cannot be, the nearest one above it that can. */
  #arm(): void {
    this.#watcher?.close()
    let at = this.directory
    let watcher = this.#tryWatch(at)
    while (!watcher && at !== dirname(at)) {
      at = dirname(at)
      watcher = this.#tryWatch(at)
    }
    // Down again: what is missing may have come before the watch above it was armed.
    while (watcher && at !== this.directory) {
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
      watcher.on('change', (kind, name) => this.#hear(path, kind, name))
      watcher.on('error', () => (this.#watchedPath = undefined)) // the next look by the clock arms it again
      return watcher
    } catch {
      return undefined // not there, not allowed, or no watch left: the next one up, or the quick looks
    }
  }

  #hear(path: string, kind: string, name: string | Buffer | null): void {
    if (this.#stopped) return
    const self = name === basename(path)
    const next = path === this.directory ? this.only : this.#nextBelow(path)
    if (name !== null && !self && next !== undefined && name !== next) return
    // The directory itself went or came: a watch on it is deaf from now on.
    if (path !== this.directory || (self && kind === 'rename')) this.#armedOn = null
    this.heard()
  }

  #nextBelow(path: string): string {
    return relative(path, this.directory).split(sep)[0] ?? ''
  }
}

/** Which directory is at a path now; undefined where none is. */
export async function directoryIdentity(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path, { bigint: true })
    return `${found.dev}:${found.ino}:${found.birthtimeNs}`
  } catch {
    return undefined // what is looked for in it says what is wrong
  }
}
