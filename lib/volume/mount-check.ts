import { PlugstreamError } from '../errors.js'
import { mountError } from './errors.js'
import { isReadonly, mountsAt, mountsBelow, type Mount } from './mount-table.js'
import type { VolumeFiles } from './ports.js'

/**
 * What the mount table says of one path, which is free of symbolic links. Where mounts cannot be seen, or the table changes
 * faster than it can be read, nothing is known, and nothing is held against the plugin.
 */
export class MountCheck {
  readonly path: string
  readonly #files: Pick<VolumeFiles, 'mounts' | 'expectsMounts'>

  constructor(files: Pick<VolumeFiles, 'mounts' | 'expectsMounts'>, path: string) {
    this.#files = files
    this.path = path
  }

  /** Something is mounted there that is none of ours: it is neither hidden nor taken for the volume. @throws ERR_MOUNT. */
  async mustBeFree(): Promise<void> {
    const found = (await this.#top())?.at(-1)
    if (found)
      throw mountError(`${found.source} (${found.fsType}) is mounted at ${this.path} from elsewhere`, this.path)
  }

  /** What the plugin said it did is there. @throws ERR_MOUNT. */
  async mustBeMounted(readonly: boolean): Promise<void> {
    const missing = await this.missing(readonly)
    if (missing !== undefined) throw mountError(`the plugin answered OK, and ${missing}`, this.path)
  }

  /** What there is not of a mount, for people; undefined where it is there. */
  async missing(readonly: boolean): Promise<string | undefined> {
    const found = this.#files.expectsMounts && (await this.#top())
    if (!found) return undefined
    const top = found.at(-1)
    if (!top) return `nothing is mounted at ${this.path}`
    return readonly && !isReadonly(top) ? `${this.path} is not read-only` : undefined
  }

  /** Nothing is mounted there, or below, any more. @throws `otherwise`, by default ERR_MOUNT. */
  async mustBeGone(otherwise?: Error): Promise<void> {
    const mounts = await this.#table()
    if (!mounts) return
    if (mountsAt(mounts, this.path).length === 0 && mountsBelow(mounts, this.path).length === 0) return
    throw (
      otherwise ?? mountError(`the plugin answered OK, and something is still mounted at ${this.path}`, this.path, true)
    )
  }

  async #top(): Promise<readonly Mount[] | undefined> {
    const mounts = await this.#table()
    return mounts && mountsAt(mounts, this.path)
  }

  async #table(): Promise<readonly Mount[] | undefined> {
    try {
      return await this.#files.mounts()
    } catch (failure) {
      if (failure instanceof PlugstreamError && failure.retryable) return undefined
      throw failure
    }
  }
}
