import type { StoreWrite } from '../store/state-store.js'
import type { PluginInfo, PluginRef } from './plugin.js'
import { quarantinePrefix } from '../stored-record.js'
import { encodeRecord, recordKey } from './record.js'
import type { Instance, RegistryState, Step, Unreadable } from './registry-state.js'
import { pluginInfo, type Deregistration, type PluginDefinition, type Update, type ValidChange } from './validate.js'

type Present = Pick<Instance, 'plugin' | 'order' | 'generation'>

/**
 * A line of changes thought through on top of a state that stays as it is: each sees what those before it would bring about. If what
 * it writes is saved, the steps are committed one by one; if not, it is dropped, and nothing is to be undone.
 */
export class Draft {
  readonly steps: Step[] = []
  /** Saves the steps, in their order. */
  readonly writes: StoreWrite[] = []
  /** Copies of unreadable records that the steps overwrite: to be saved before them. */
  readonly setAside: StoreWrite[] = []
  /** Those records. */
  readonly overwritten: Unreadable[] = []
  readonly #state: RegistryState
  readonly #touched = new Map<string, Present | undefined>()
  #nextOrder: number
  #nextGeneration: number

  constructor(state: RegistryState) {
    this.#state = state
    this.#nextOrder = state.nextOrder
    this.#nextGeneration = state.nextGeneration
  }

  /** How many events the steps will have. */
  get eventCount(): number {
    return this.steps.filter(({ kind }) => kind !== 'nothing' && kind !== 'confirmed').length
  }

  /** @param at Unix ms. */
  add(change: ValidChange, at: number): void {
    this.steps.push(this.#step(change, at))
  }

  #step(change: ValidChange, at: number): Step {
    switch (change.kind) {
      case 'register':
        return this.#register(change.plugin, this.#nextGeneration++, at)
      case 'update':
        return this.#update(change, at)
      case 'deregister':
        return this.#deregister(change, at)
    }
  }

  #register(definition: PluginDefinition, generation: number, at: number): Step {
    const key = recordKey(definition)
    const present = this.#present(key, definition)
    if (present && isSame(present.plugin, definition)) {
      this.#touched.set(key, { ...present, generation })
      return { ...present, kind: 'confirmed', key, generation, at }
    }
    const plugin = pluginInfo(definition, present?.plugin.registeredAt ?? at)
    const order = present?.order ?? this.#nextOrder++
    this.#touched.set(key, { plugin, order, generation })
    this.#keepCopy(key)
    this.writes.push({ kind: 'put', key, value: encodeRecord({ plugin, order }) })
    return { kind: present ? 'updated' : 'registered', plugin, key, order, generation, at }
  }

  /** The generation stays: who registered it still may take it back. */
  #update({ ref, version, provider }: Update, at: number): Step {
    const present = this.#present(recordKey(ref), ref)
    if (!present) return { kind: 'nothing' }
    return this.#register({ ...present.plugin, version, provider }, present.generation, at)
  }

  #deregister({ ref, reason, generation }: Deregistration, at: number): Step {
    const key = recordKey(ref)
    const present = this.#present(key, ref)
    if (!present || (generation !== undefined && generation !== present.generation)) return { kind: 'nothing' }
    this.#touched.set(key, undefined)
    this.writes.push({ kind: 'delete', key })
    const { plugin, order } = present
    const step: Step = { kind: 'deregistered', plugin, key, order, generation: present.generation, at }
    return reason === undefined ? step : { ...step, reason }
  }

  #present(key: string, ref: PluginRef): Present | undefined {
    return this.#touched.has(key) ? this.#touched.get(key) : this.#state.find(ref)
  }

  #keepCopy(key: string): void {
    const unreadable = this.#state.unreadable.get(key)
    if (!unreadable || unreadable.setAside) return
    this.overwritten.push(unreadable)
    this.setAside.push({ kind: 'put', key: quarantinePrefix + key, value: unreadable.copy })
  }
}

/** `registeredAt` does not count: it is the registry's. */
function isSame(plugin: PluginInfo, definition: PluginDefinition): boolean {
  return (
    plugin.version === definition.version &&
    plugin.provider === definition.provider &&
    plugin.connection.socketPath === definition.connection.socketPath &&
    isSameText(plugin.options, definition.options)
  )
}

function isSameText(a: PluginInfo['options'], b: PluginInfo['options']): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
}
