/** Work that goes on by itself and that closing has to wait for. How it ends is its owner's business. */
export class Unfinished {
  readonly #work = new Set<Promise<unknown>>()

  add(work: Promise<unknown>): void {
    const done: Promise<unknown> = work.catch(() => undefined).finally(() => this.#work.delete(done))
    this.#work.add(done)
  }

  /** Resolves when nothing is left of it, or after `timeoutMs`. Default: no limit. */
  async settled(timeoutMs?: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      if (timeoutMs !== undefined) timer = setTimeout(resolve, timeoutMs)
    })
    const done = async (): Promise<void> => {
      while (this.#work.size > 0) await Promise.all(this.#work)
    }
    await Promise.race([done(), late]).finally(() => clearTimeout(timer))
  }
}
