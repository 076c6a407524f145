import { setMaxListeners } from 'node:events'
import { csiOperationTimeoutMs, volumesAtOnce } from '../defaults.js'
import { fieldsOf, takeOptions } from '../options.js'
import { Unfinished } from '../unfinished.js'
import { limited, type Limits } from './limits.js'
import { Turns } from './turns.js'
import type { VolumeCallOptions } from './volume.js'

const optionFields = fieldsOf<VolumeCallOptions>({ signal: true, timeoutMs: true })

/** What is done with volumes: one thing at a time for each, in the order it was asked for, and not too many at one plugin. */
export class Operations {
  readonly #turns = new Turns(1)
  readonly #places = new Turns(volumesAtOnce)
  readonly #closing = new AbortController()
  readonly #unfinished = new Unfinished()

  constructor() {
    setMaxListeners(0, this.#closing.signal) // each operation under way has one
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  /**
   * Work in a turn of what it is about. For its plugin a volume is the same in every namespace, so that its id is enough.
   *
   * @throws ERR_TIMEOUT, ERR_ABORTED and ERR_CLOSED at once, whatever the work does then; and what it throws.
   */
  inTurn<T>(
    doing: string,
    about: { plugin: string; id: string },
    options: VolumeCallOptions,
    work: (limits: Limits) => Promise<T>,
  ): Promise<T> {
    return this.within(doing, options, (limits) => {
      limits.doing = 'waiting for its turn'
      return this.#turns.take(JSON.stringify([about.plugin, about.id]), limits.signal, () => {
        limits.doing = doing
        return work(limits)
      })
    })
  }

  /** Work within its time, in the turn of who does it. */
  within<T>(doing: string, options: VolumeCallOptions, work: (limits: Limits) => Promise<T>): Promise<T> {
    const { timeoutMs = csiOperationTimeoutMs, signal } = takeOptions('options', options, optionFields)
    const bounds = { timeoutMs, signal }
    return limited(doing, bounds, this.#closing.signal, this.#unfinished, work)
  }

  /** Work with a plugin that is there. */
  inPlace<T>(plugin: string, limits: Limits, work: () => Promise<T>): Promise<T> {
    limits.doing = `waiting for one of ${volumesAtOnce} places`
    return this.#places.take(plugin, limits.signal, work)
  }

  /** Ends what is going on, as far as it can be in a time. Default: no limit. */
  async close(timeoutMs?: number): Promise<void> {
    this.#closing.abort()
    await this.#unfinished.settled(timeoutMs)
  }
}
