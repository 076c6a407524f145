import { instanceKey, refOf, type PluginRef, type RegistryChange } from './plugin.js'

type Deregister = Extract<RegistryChange, { kind: 'deregister' }>

/**
 * What one task has in the registry, as far as changes are still on their way: a registration that was asked for counts as held
 * before it is answered, and a deregistration stays to be done until it is.
 */
export class Holdings {
  readonly #held = new Map<string, PluginRef>()
  readonly #leaving = new Map<string, Deregister>()

  /** A registration was asked for. */
  hold(ref: PluginRef): void {
    this.#held.set(instanceKey(ref), refOf(ref))
  }

  /** Everything held, and everything that is `present` in the registry, is to go, except what is in `keep`. The first reason stays. */
  leave(present: readonly PluginRef[], reason: string, keep: readonly PluginRef[] = []): void {
    const kept = new Set(keep.map(instanceKey))
    for (const ref of [...present, ...this.#held.values()]) {
      const key = instanceKey(ref)
      if (kept.has(key) || this.#leaving.has(key)) continue
      this.#leaving.set(key, { kind: 'deregister', ref: refOf(ref), reason })
    }
  }

  /** What is still to be done, in the order in which it was asked for. */
  get leaving(): readonly Deregister[] {
    return [...this.#leaving.values()]
  }

  /** It was done. */
  left(ref: PluginRef): void {
    this.#held.delete(instanceKey(ref))
    this.#leaving.delete(instanceKey(ref))
  }
}
