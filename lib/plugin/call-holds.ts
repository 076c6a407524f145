interface Hold {
  count: number
  readonly over: Promise<void>
  readonly end: () => void
}

/**
 * Which plugins are not to be called for a while, by their names. Who holds one back lets go of it again; several may hold the same one.
 *
 * @example
 * const letGo = holds.hold('csi-node plugin "disk"')
 * for (let over = holds.held(name); over; over = holds.held(name)) await over // may be held again by then
 */
export class CallHolds {
  readonly #holds = new Map<string, Hold>()

  /** Holds calls back until the function given back is called; idempotent. */
  hold(name: string): () => void {
    const hold = this.#holds.get(name) ?? newHold()
    this.#holds.set(name, { ...hold, count: hold.count + 1 })
    let isHeld = true
    return () => {
      if (isHeld) this.#letGo(name)
      isHeld = false
    }
  }

  /** Resolves when the calls of a plugin are let go; nothing where they are not held. */
  held(name: string): Promise<void> | undefined {
    return this.#holds.get(name)?.over
  }

  #letGo(name: string): void {
    const hold = this.#holds.get(name)
    if (!hold) return
    if (hold.count > 1) return void this.#holds.set(name, { ...hold, count: hold.count - 1 })
    this.#holds.delete(name)
    hold.end()
  }
}

function newHold(): Hold {
  let end = (): void => undefined
  const over = new Promise<void>((resolve) => (end = resolve))
  return { count: 0, over, end }
}
