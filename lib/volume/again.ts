import { volumeRetryMaxMs, volumeRetryMs } from '../defaults.js'

interface Turn {
  delayMs: number
  timer?: NodeJS.Timeout
  isUnderWay: boolean
  isAskedFor: boolean
  isAskedForLater: boolean
}

/**
 * Work by key that is done until it succeeds: at once where something has happened, and else after a pause that doubles with every
 * failure. Only one goes on for a key; who asks meanwhile has it done once more: it may have seen the time before.
 */
export class Again {
  readonly #work: (key: string) => Promise<unknown>
  readonly #turns = new Map<string, Turn>()
  #isClosed = false

  constructor(work: (key: string) => Promise<unknown>) {
    this.#work = work
  }

  /** At once, and with short pauses again if it fails. */
  now(key: string): void {
    const turn = this.#turnOf(key)
    turn.delayMs = volumeRetryMs
    this.#start(key, turn)
  }

  /** After a pause. */
  later(key: string): void {
    const turn = this.#turnOf(key)
    turn.isAskedForLater = turn.isUnderWay
    if (this.#isClosed || turn.isUnderWay || turn.timer) return
    turn.timer = setTimeout(() => this.#start(key, turn), turn.delayMs)
    turn.delayMs = Math.min(2 * turn.delayMs, volumeRetryMaxMs)
  }

  /** Begins nothing any more. */
  close(): void {
    this.#isClosed = true
    for (const { timer } of this.#turns.values()) clearTimeout(timer)
  }

  #turnOf(key: string): Turn {
    const turn = this.#turns.get(key) ?? {
      delayMs: volumeRetryMs,
      isUnderWay: false,
      isAskedFor: false,
      isAskedForLater: false,
    }
    this.#turns.set(key, turn)
    return turn
  }

  #start(key: string, turn: Turn): void {
    clearTimeout(turn.timer)
    delete turn.timer
    if (this.#isClosed) return
    turn.isAskedFor = turn.isUnderWay
    if (turn.isUnderWay) return
    turn.isUnderWay = true
    turn.isAskedForLater = false
    const ended = (next: () => void) => (): void => {
      turn.isUnderWay = false
      if (turn.isAskedFor) this.#start(key, turn)
      else next()
    }
    this.#work(key).then(
      ended(() => {
        const { isAskedForLater } = turn
        this.#turns.delete(key)
        if (isAskedForLater) this.later(key)
      }),
      ended(() => this.later(key)),
    )
  }
}
