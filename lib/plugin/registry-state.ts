import type { PlugstreamError } from '../errors.js'
import type { PluginInfo, PluginRef, RegistryEvent } from './plugin.js'
import { recordKey, type PluginRecord } from './record.js'

/** One registered instance. `older` and `newer` are its neighbours of the same plugin. */
export interface Instance extends PluginRecord {
  readonly key: string
  /** Grows with every registration of the ref, also one that changes nothing: who holds an older one holds nothing. */
  generation: number
  /** Number and time of its `registered` event. */
  readonly seq: number
  readonly at: number
  /** Restored, and not registered since. */
  restored: boolean
  older: Instance | undefined
  newer: Instance | undefined
}

/** All instances of one plugin. */
interface Line {
  newest: Instance | undefined
  readonly allocs: Map<string, Instance>
}

/** A record that could not be read, and what is copied before it is overwritten. */
export interface Unreadable {
  readonly problem: PlugstreamError
  readonly copy: unknown
  /** The copy was saved. */
  setAside: boolean
}

/**
 * What a change comes to. `nothing`: there is nothing to deregister or to update. `confirmed`: it is registered just so already; at
 * most the generation is new. The others are what their event will be called.
 */
export type Step =
  | { kind: 'nothing' }
  | {
      kind: RegistryEvent['kind'] | 'confirmed'
      /** As it will be; where it is deregistered, as it was. */
      plugin: PluginInfo
      key: string
      order: number
      generation: number
      at: number
      reason?: string
    }

/**
 * Who is registered, as far as it is saved: nothing here is ever taken back. Every question costs the same however many plugins
 * there are.
 *
 * Invariants: `#all` is in order of registration; of a plugin's instances `newest` is the one registered last; no line is empty.
 */
export class RegistryState {
  readonly #all = new Set<Instance>()
  readonly #lines = new Map<string, Map<string, Line>>()
  readonly #allocs = new Map<string, Set<Instance>>()
  #plugins: readonly PluginInfo[] | undefined
  /** Records that could not be read, by their key. */
  readonly unreadable = new Map<string, Unreadable>()
  nextOrder = 1
  nextGeneration = 1

  get size(): number {
    return this.#all.size
  }

  find({ type, name, allocId }: PluginRef): Instance | undefined {
    return this.#line(type, name)?.allocs.get(allocId)
  }

  current(type: string, name: string): PluginInfo | undefined {
    return this.#line(type, name)?.newest?.plugin
  }

  /** Newest first. */
  instances(type: string, name: string): readonly PluginInfo[] {
    const found: PluginInfo[] = []
    for (let one = this.#line(type, name)?.newest; one; one = one.older) found.push(one.plugin)
    return found
  }

  instancesOf(allocId: string): readonly PluginInfo[] {
    return [...(this.#allocs.get(allocId) ?? [])].map(({ plugin }) => plugin)
  }

  /** The current instance of each plugin. */
  list(type?: string): readonly PluginInfo[] {
    const types = type === undefined ? [...this.#lines.values()] : [this.#lines.get(type) ?? new Map<string, Line>()]
    return types.flatMap((names) => [...names.values()].flatMap(({ newest }) => (newest ? [newest.plugin] : [])))
  }

  /** Every instance, oldest first; the same array until something changes. */
  plugins(): readonly PluginInfo[] {
    this.#plugins ??= Object.freeze([...this.#all].map(({ plugin }) => plugin))
    return this.#plugins
  }

  /** One `registered` event for each instance, oldest first, as they would tell of what is true now. */
  replay(): RegistryEvent[] {
    return [...this.#all].map(({ plugin, seq, at, restored }) => ({
      kind: 'registered',
      plugin,
      current: this.current(plugin.type, plugin.name),
      seq,
      at,
      restored,
    }))
  }

  /** Takes over a record that was read; to be called in their order. */
  restore(record: PluginRecord, seq: number, at: number): void {
    this.#add(instanceOf(record, recordKey(record.plugin), this.nextGeneration, seq, at, true))
  }

  /** Takes over a step that was saved, and gives its event, where it has one; `seq` is asked for its number. */
  commit(step: Step, seq: () => number): RegistryEvent | undefined {
    if (step.kind === 'nothing') return undefined
    const { kind, plugin, key, order, generation, at, reason } = step
    const number = kind === 'confirmed' ? 0 : seq()
    const known = this.find(plugin)
    if (!known) this.#add(instanceOf({ plugin, order }, key, generation, number, at, false))
    else if (kind === 'deregistered') this.#remove(known)
    else this.#renew(known, plugin, generation)
    if (kind === 'confirmed') return undefined
    const current = this.current(plugin.type, plugin.name)
    const event: RegistryEvent = { kind, plugin, current, seq: number, at, restored: false }
    return Object.freeze(reason === undefined ? event : { ...event, reason })
  }

  #line(type: string, name: string): Line | undefined {
    return this.#lines.get(type)?.get(name)
  }

  #add(instance: Instance): void {
    const { type, name, allocId } = instance.plugin
    const names = getOrAdd(this.#lines, type, () => new Map<string, Line>())
    const line = getOrAdd(names, name, (): Line => ({ newest: undefined, allocs: new Map() }))
    instance.older = line.newest
    if (line.newest) line.newest.newer = instance
    line.newest = instance
    line.allocs.set(allocId, instance)
    getOrAdd(this.#allocs, allocId, () => new Set<Instance>()).add(instance)
    this.#all.add(instance)
    this.unreadable.delete(instance.key)
    this.nextOrder = Math.max(this.nextOrder, instance.order + 1)
    this.nextGeneration = instance.generation + 1
    this.#plugins = undefined
  }

  #renew(instance: Instance, plugin: PluginInfo, generation: number): void {
    instance.restored &&= instance.generation === generation
    instance.plugin = plugin
    instance.generation = generation
    this.nextGeneration = Math.max(this.nextGeneration, generation + 1)
    this.#plugins = undefined
  }

  #remove(instance: Instance): void {
    const { type, name, allocId } = instance.plugin
    const { older, newer } = instance
    const names = this.#lines.get(type)
    const line = names?.get(name)
    if (older) older.newer = newer
    if (newer) newer.older = older
    else if (line) line.newest = older
    line?.allocs.delete(allocId)
    if (line?.allocs.size === 0) names?.delete(name)
    if (names?.size === 0) this.#lines.delete(type)
    const ofAlloc = this.#allocs.get(allocId)
    ofAlloc?.delete(instance)
    if (ofAlloc?.size === 0) this.#allocs.delete(allocId)
    this.#all.delete(instance)
    this.#plugins = undefined
  }
}

function instanceOf(
  { plugin, order }: PluginRecord,
  key: string,
  generation: number,
  seq: number,
  at: number,
  restored: boolean,
): Instance {
  return { plugin, order, key, generation, seq, at, restored, older: undefined, newer: undefined }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
