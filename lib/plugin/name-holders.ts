interface Holder {
  by: string
  doubted: boolean
  confirmed: boolean
}

/**
 * Who has which name, of those who come for the same ones: the first, for as long as it can be relied on. A holder that is doubted loses
 * the name to whoever takes it next, and is to go when that one has confirmed that it is there; where nobody comes, it keeps it.
 */
export class NameHolders {
  readonly #holders = new Map<string, Holder>()
  readonly #listeners = new Set<{ hear: (name: string) => void }>()

  /** Who has a name and is there. */
  holder(name: string): string | undefined {
    const holder = this.#holders.get(name)
    return holder?.confirmed ? holder.by : undefined
  }

  /** Takes a name, if it can be had. Gives back who has it now. */
  take(name: string, by: string): string {
    const holder = this.#holders.get(name)
    if (holder && holder.by !== by && !holder.doubted) return holder.by
    this.#holders.set(name, { by, doubted: false, confirmed: holder?.by === by && holder.confirmed })
    return by
  }

  confirm(name: string, by: string): void {
    this.#change(name, by, (holder) => (holder.confirmed = true))
  }

  /** Whoever wants the name may have it. */
  doubt(name: string, by: string): void {
    this.#change(name, by, (holder) => (holder.doubted = true))
  }

  leave(name: string, by: string): void {
    this.#change(name, by, () => this.#holders.delete(name))
  }

  /** Hears of every name that is confirmed, doubted or left, until the function given back is called. */
  onChange(hear: (name: string) => void): () => void {
    const listener = { hear }
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #change(name: string, by: string, change: (holder: Holder) => unknown): void {
    const holder = this.#holders.get(name)
    if (holder?.by !== by) return
    change(holder)
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener.hear(name)
  }
}
