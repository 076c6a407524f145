import { seqBlock } from '../defaults.js'
import type { StoreWrite } from '../store/state-store.js'
import { encodeSequence, sequenceKey } from './record.js'

/**
 * Sequence numbers that grow over restarts without a write each: they are reserved in blocks, and none is used before the record of
 * its block was saved. What a crash leaves of a block is not used again.
 */
export class Sequence {
  #last: number
  #reserved: number
  #asked: number

  /** @param reserved up to where an earlier run may have used them. */
  constructor(reserved: number) {
    this.#last = this.#reserved = this.#asked = reserved
  }

  /** What has to be saved before `count` more are used, then to be confirmed; undefined where they are reserved already. */
  reserve(count: number): StoreWrite | undefined {
    if (this.#last + count <= this.#reserved) return undefined
    this.#asked = this.#last + count + seqBlock
    return { kind: 'put', key: sequenceKey, value: encodeSequence(this.#asked) }
  }

  /** What `reserve` asked for last was saved. */
  confirm(): void {
    this.#reserved = this.#asked
  }

  next(): number {
    return ++this.#last
  }
}
