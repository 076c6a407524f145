import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { status } from 'plugstream/csi'

/**
 * Things on record: a directory each, in which `record.json` is; a thing is there if this file is. The id follows from the name, so that
 * what is made twice is one, and an id that this driver did not make leads nowhere.
 */
export class Records<T extends { id: string }> {
  readonly #root: string
  readonly #noun: string

  constructor(root: string, noun: string) {
    this.#root = root
    this.#noun = noun
  }

  idOf(...names: string[]): string {
    const digest = createHash('sha256').update(JSON.stringify(names)).digest('hex')
    return `${this.#noun}-${digest.slice(0, 32)}`
  }

  isId(text: string): boolean {
    return text.startsWith(`${this.#noun}-`) && /^[0-9a-f]{32}$/.test(text.slice(this.#noun.length + 1))
  }

  /** A path below the thing's own directory. */
  path(id: string, name = ''): string {
    if (!this.isId(id)) throw status('NOT_FOUND', `there is no ${this.#noun} ${id}`)
    return join(this.#root, id, name)
  }

  async find(id: string): Promise<T | undefined> {
    if (!this.isId(id)) return undefined
    try {
      return JSON.parse(await readFile(this.path(id, 'record.json'), 'utf8')) as T
    } catch (failure) {
      if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw failure
    }
  }

  async get(id: string): Promise<T> {
    const found = await this.find(id)
    if (!found) throw status('NOT_FOUND', `there is no ${this.#noun} ${id}`)
    return found
  }

  /** Saved whole or not at all, also when the driver is killed meanwhile. */
  async save(record: T): Promise<void> {
    const path = this.path(record.id, 'record.json')
    await mkdir(this.path(record.id), { recursive: true, mode: 0o700 })
    await writeFile(`${path}.new`, JSON.stringify(record), { flush: true })
    await rename(`${path}.new`, path)
  }

  /** The record goes first: what is left of a removal that was cut off is not there any more, and goes with the next one. */
  async remove(id: string): Promise<void> {
    if (!this.isId(id)) return
    await rm(this.path(id, 'record.json'), { force: true })
    await rm(this.path(id), { recursive: true, force: true })
  }

  /** All of them, in an order that stays. */
  async list(): Promise<T[]> {
    const ids = await readdir(this.#root).catch(() => [])
    const found = await Promise.all(ids.sort().map((id) => this.find(id)))
    return found.filter((record) => record !== undefined)
  }

  /** A page of a list. Its token is the id that comes next, so that a page begins where it should also when others came or went. */
  page(all: T[], { max_entries, starting_token }: { max_entries: number; starting_token: string }) {
    if (max_entries < 0) throw status('INVALID_ARGUMENT', 'max_entries is negative')
    if (starting_token && !this.isId(starting_token)) throw status('ABORTED', 'starting_token is not from here')
    const left = all.filter(({ id }) => id >= starting_token)
    const records = left.slice(0, max_entries || left.length)
    return { records, next_token: left[records.length]?.id ?? '' }
  }
}
