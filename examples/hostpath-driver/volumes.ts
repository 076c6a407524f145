import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { status } from 'plugstream/csi'
import { isAttached } from './attach.js'

export interface Volume {
  id: string
  name: string
  capacityBytes: string
  /** The paths it was attached at, and whether read-only. */
  uses: Record<string, { readonly: boolean }>
}

/**
 * Volumes in a directory, one directory each: `data/` and `volume.json`; a volume is there if this file is. The id follows from the
 * name, so that a volume made twice is one volume, and an id that this driver did not make leads nowhere.
 */
export class Volumes {
  readonly #root: string
  readonly #busy = new Set<string>()

  constructor(dataDir: string) {
    this.#root = join(dataDir, 'volumes')
  }

  static idOf(name: string): string {
    return `vol-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
  }

  dataPath(id: string): string {
    return join(this.#root, id, 'data')
  }

  async find(id: string): Promise<Volume | undefined> {
    if (!/^vol-[0-9a-f]{32}$/.test(id)) return undefined
    const text = await readFile(join(this.#root, id, 'volume.json'), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (JSON.parse(text) as Volume)
  }

  async get(id: string): Promise<Volume> {
    const volume = await this.find(id)
    if (!volume) throw status('NOT_FOUND', `there is no volume ${id}`)
    return volume
  }

  /** Saved whole or not at all, also when the driver is killed meanwhile. */
  async save(volume: Volume): Promise<void> {
    const path = join(this.#root, volume.id, 'volume.json')
    await mkdir(this.dataPath(volume.id), { recursive: true, mode: 0o700 })
    await writeFile(`${path}.new`, JSON.stringify(volume))
    await rename(`${path}.new`, path)
  }

  async remove(id: string): Promise<void> {
    await rm(join(this.#root, id, 'volume.json'))
    await rm(join(this.#root, id), { recursive: true })
  }

  /** All volumes, in an order that stays. */
  async list(): Promise<Volume[]> {
    const ids = await readdir(this.#root).catch(() => [])
    const found = await Promise.all(ids.sort().map((id) => this.find(id)))
    return found.filter((volume) => volume !== undefined)
  }

  /** Whether it really is attached somewhere; what is only on record, as after a reboot, does not count. */
  async isInUse({ id, uses }: Volume): Promise<boolean> {
    const attached = await Promise.all(Object.keys(uses).map((path) => isAttached(this.dataPath(id), path)))
    return attached.includes(true)
  }

  /** One operation on a volume at a time; the specification has a status for the second one. */
  async exclusive<T>(id: string, operation: () => Promise<T>): Promise<T> {
    if (this.#busy.has(id)) throw status('ABORTED', `another operation on volume ${id} is under way`)
    this.#busy.add(id)
    return operation().finally(() => this.#busy.delete(id))
  }
}
