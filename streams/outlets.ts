import type { Observable, Subscription } from 'rxjs'
import { outletBufferCount } from '../lib/defaults.js'
import { fieldsOf, takeOptions } from '../lib/options.js'

/** What a reader is given: the whole first, then each change; after a reader fell too far behind, the whole again. */
export type OutletItem<S, C> =
  /** `missed` is how many changes were left out since the item before, all of them contained in `value`. */
  { kind: 'snapshot'; value: S; missed: number } | { kind: 'change'; value: C }

export interface OutletInit<S, C> {
  /** The whole as it is now. */
  snapshot: () => S
  change$: Observable<C>
  /** How many changes wait for a reader before they are dropped for a fresh snapshot. Default: 1 000. */
  maxBufferedCount?: number | undefined
}

const initFields = fieldsOf<OutletInit<unknown, unknown>>({ snapshot: true, change$: true, maxBufferedCount: true })

/**
 * An Observable as an async iterable that a slow reader cannot make grow, and with which it slows down nobody. Each iteration
 * subscribes for itself; leaving the loop unsubscribes, also while an item is awaited.
 *
 * @throws ERR_OPTION_INVALID in the call itself; from the loop what `change$` fails with, after the items before it, and what `snapshot` throws.
 * @example
 * for await (const item of outlet({ snapshot: () => host.registry.list(), change$: host.registry.event$ })) { … }
 */
export function outlet<S, C>(init: OutletInit<S, C>): AsyncIterable<OutletItem<S, C>> {
  takeOptions('init', init, initFields)
  return { [Symbol.asyncIterator]: () => new Outlet(init) }
}

type Result<S, C> = IteratorResult<OutletItem<S, C>, undefined>

class Outlet<S, C> implements AsyncIterator<OutletItem<S, C>, undefined> {
  readonly #init: OutletInit<S, C>
  readonly #waiting: { resolve: (result: Result<S, C>) => void; reject: (failure: unknown) => void }[] = []
  #buffer: C[] = []
  #missed: number | undefined = 0 // a number: the next item is a snapshot
  #end: { failure?: unknown } | undefined // told once everything before it was read; a failure is told once
  #source: Subscription | undefined

  constructor(init: OutletInit<S, C>) {
    this.#init = init
  }

  next(): Promise<Result<S, C>> {
    if (!this.#end) {
      this.#source ??= this.#init.change$.subscribe({
        next: (change) => this.#push(change),
        error: (failure: unknown) => this.#finish({ failure }),
        complete: () => this.#finish({}),
      })
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#serve()
    })
  }

  return(): Promise<Result<S, C>> {
    this.#source?.unsubscribe()
    this.#buffer = []
    this.#missed = undefined
    this.#finish({})
    return Promise.resolve({ done: true, value: undefined })
  }

  #push(change: C): void {
    if (this.#missed === undefined && this.#buffer.length < (this.#init.maxBufferedCount ?? outletBufferCount)) {
      this.#buffer.push(change)
    } else {
      // one more than fits: the snapshot, taken when it is asked for, holds them all
      this.#missed = (this.#missed ?? 0) + this.#buffer.length + 1
      this.#buffer = []
    }
    this.#serve()
  }

  #finish(end: { failure?: unknown }): void {
    this.#end = end
    this.#serve()
  }

  #serve(): void {
    for (let reader = this.#waiting[0]; reader; reader = this.#waiting[0]) {
      const item = this.#take()
      if (!item && !this.#end) return
      this.#waiting.shift()
      if (item) reader.resolve({ done: false, value: item })
      else if (this.#end && 'failure' in this.#end) {
        reader.reject(this.#end.failure)
        this.#end = {}
      } else reader.resolve({ done: true, value: undefined })
    }
  }

  #take(): OutletItem<S, C> | undefined {
    if (this.#missed !== undefined) {
      const missed = this.#missed
      this.#missed = undefined
      try {
        return { kind: 'snapshot', value: this.#init.snapshot(), missed }
      } catch (failure) {
        this.#source?.unsubscribe()
        this.#buffer = []
        this.#end = { failure }
        return undefined
      }
    }
    return this.#buffer.length === 0 ? undefined : { kind: 'change', value: this.#buffer.shift() as C }
  }
}
