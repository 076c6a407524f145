/**
 * Looks that never overlap: at once when asked, and again after the pause that the last look came to. An ask during a look is
 * remembered, since that look may have seen the time before it: one more follows at once.
 */
export class LookLoop {
  #looking = false
  #lookAgain = false
  #stopped = false
  #timer: NodeJS.Timeout | undefined

  /** @param look comes to the pause until the next one, in ms; never rejects. It is told whether the clock alone asks for it. */
  constructor(private readonly look: (byClock: boolean) => Promise<number>) {}

  get stopped(): boolean {
    return this.#stopped
  }

  ask(): void {
    if (this.#looking) this.#lookAgain = true
    else if (!this.#stopped) void this.#look(false)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #look(byClock: boolean): Promise<void> {
    this.#looking = true
    clearTimeout(this.#timer)
    const pauseMs = await this.look(byClock)
    this.#looking = false
    if (this.#stopped) return
    if (this.#lookAgain) {
      this.#lookAgain = false
      void this.#look(false)
    } else this.#timer = setTimeout(() => void this.#look(true), pauseMs)
  }
}
