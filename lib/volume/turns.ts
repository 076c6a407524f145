/** How to leave the place one had. */
type Leave = () => void

interface Lane {
  inside: number
  readonly waiting: Set<() => void>
}

/**
 * Lanes by key that let `width` pass at a time, first come, first served. Who waits can give up, and then never had a turn.
 *
 * @example await turns.take('vol-1', signal, () => stage())
 */
export class Turns {
  readonly #width: number
  readonly #lanes = new Map<string, Lane>()

  constructor(width: number) {
    this.#width = width
  }

  /** @throws the reason of the signal where it is aborted before the turn came; then what `work` throws. */
  async take<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const leave = await this.#enter(key, signal)
    try {
      signal.throwIfAborted() // it was aborted as the turn came
      return await work()
    } finally {
      leave()
    }
  }

  async #enter(key: string, signal: AbortSignal): Promise<Leave> {
    signal.throwIfAborted()
    const lane = this.#lanes.get(key) ?? { inside: 0, waiting: new Set() }
    this.#lanes.set(key, lane)
    if (lane.inside >= this.#width) await turnIn(lane, signal)
    else lane.inside++
    return () => {
      const [next] = lane.waiting
      // The place goes from one to the next, so that nobody who comes now is faster.
      if (next) return next()
      lane.inside--
      if (lane.inside === 0) this.#lanes.delete(key)
    }
  }
}

function turnIn(lane: Lane, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => (): void => {
      lane.waiting.delete(called)
      signal.removeEventListener('abort', gaveUp)
      settle()
    }
    const called = end(resolve)
    const gaveUp = end(() => reject(signal.reason as Error))
    lane.waiting.add(called)
    signal.addEventListener('abort', gaveUp)
  })
}
