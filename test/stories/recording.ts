import type { Observable, Subscription } from 'rxjs'

const patienceMs = 10_000

/** Everything a stream told, and a way to wait for what it will tell. */
export class Recording<T> {
  readonly all: T[] = []
  /** How the stream ended, if it did. */
  end: 'completed' | { failure: unknown } | undefined
  #from = 0
  readonly #waiting = new Set<() => void>()
  readonly #subscription: Subscription

  constructor(source$: Observable<T>) {
    const heard = (): void => this.#waiting.forEach((look) => look())
    this.#subscription = source$.subscribe({
      next: (value) => {
        this.all.push(value)
        heard()
      },
      error: (failure: unknown) => {
        this.end = { failure }
        heard()
      },
      complete: () => {
        this.end = 'completed'
        heard()
      },
    })
  }

  /** What was told after the last `skip()`. */
  get fresh(): readonly T[] {
    return this.all.slice(this.#from)
  }

  /** From here on only what comes now counts. */
  skip(): void {
    this.#from = this.all.length
  }

  /** The first fresh value that matches; waits for it where it has not come yet. */
  until<S extends T>(match: (value: T) => value is S): Promise<S>
  until(match: (value: T) => boolean): Promise<T>
  until(match: (value: T) => boolean): Promise<T> {
    return this.untilAll((fresh) => fresh.find(match))
  }

  /** Waits until `find` finds something in what is fresh. */
  untilAll<R>(find: (fresh: readonly T[]) => R | undefined): Promise<R> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
      }
      const look = (): void => {
        const found = find(this.fresh)
        if (found === undefined) return
        done()
        resolve(found)
      }
      const timer = setTimeout(() => {
        done()
        reject(new Error(`nothing like it within ${patienceMs} ms, only ${JSON.stringify(this.fresh)}`))
      }, patienceMs)
      this.#waiting.add(look)
      look()
    })
  }

  stop(): void {
    this.#subscription.unsubscribe()
  }
}
