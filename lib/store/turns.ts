import { PlugstreamError } from '../errors.js'

/**
 * One piece of work after the other, in the order it was asked for, until `close`. What was asked for before is still done; what comes
 * later rejects with ERR_CLOSED.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(new PlugstreamError('ERR_CLOSED', 'the store is closed'))
    return this.#add(work)
  }

  /** Does `last` after everything else, once. */
  close(last: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#add(last)
    return this.#closing
  }

  #add<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => undefined) // told to whoever asked; the next one's turn comes all the same
    return result
  }
}
