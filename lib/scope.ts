type Close = () => unknown

/**
 * Owns what was opened. `close()` runs every closer in reverse order, waits for each, and goes on when one fails; it may be called
 * any number of times and joins a close in flight. A closer added after that runs at once.
 *
 * @throws the one failure as it is, or an AggregateError of all of them, after everything was closed.
 * @example
 * await using scope = new Scope()
 * const store = await openStore(); scope.add(() => store.close())
 */
export class Scope implements AsyncDisposable {
  #closers: { close: Close }[] = []
  #closing: Promise<void> | undefined

  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Adds a closer, and gives back the way to forget it again. */
  add(close: Close): () => void {
    if (this.#closing) {
      this.#closing = this.#closing.then(async () => void (await close()))
      this.#closing.catch(() => undefined) // told by the next close(); nobody may be waiting now
      return () => undefined
    }
    const closer = { close }
    this.#closers.push(closer)
    return () => {
      this.#closers = this.#closers.filter((one) => one !== closer)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #closeAll(): Promise<void> {
    const failures: unknown[] = []
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      try {
        await closer.close()
      } catch (failure) {
        failures.push(failure)
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, 'several parts failed to close')
  }
}
