/** Work that goes on by itself and that closing has to wait for. How it ends is its owner's business. */
export class Unfinished {
  readonly #work = new Map<Promise<unknown>, (() => void) | undefined>()

  /** @param end ends the work where it is not waited for any longer. */
  add(work: Promise<unknown>, end?: () => void): void {
    const done: Promise<unknown> = work.catch(() => undefined).finally(() => this.#work.delete(done))
    this.#work.set(done, end)
  }

  /** Resolves when nothing is left of it, or after `timeoutMs`, when the rest is ended if it can be. Default: no limit. */
  async settled(timeoutMs?: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      if (timeoutMs === undefined) return
      timer = setTimeout(() => {
        for (const end of this.#work.values()) end?.()
        resolve()
      }, timeoutMs)
    })
    const done = async (): Promise<void> => {
      while (this.#work.size > 0) await Promise.all(this.#work.keys())
    }
    await Promise.race([done(), late]).finally(() => clearTimeout(timer))
  }
}
