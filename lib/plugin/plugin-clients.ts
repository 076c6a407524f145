import { setMaxListeners } from 'node:events'
import { PlugstreamError } from '../errors.js'
import type { CallHolds } from './call-holds.js'
import type { PluginChannel, PluginGone, PluginKind } from './kind.js'
import type { PluginInfo, PluginType } from './plugin.js'

/** How an instance can be reached now. */
export interface Reach {
  healthy: boolean
  description: string
  /** Absent while nobody is there to be called. */
  channel: PluginChannel | undefined
  /** Resolves once the process behind the channel is gone; the signal ends the wait. Absent where nobody will tell. */
  gone: ((signal: AbortSignal) => Promise<unknown>) | undefined
}

/** Makes clients of plugins: each call goes over the connection that an instance has at that moment. */
export class PluginClients {
  readonly #gone = new WeakMap<PluginChannel, Reach['gone']>()
  readonly #closing = new AbortController()

  constructor(
    private readonly kinds: readonly PluginKind[],
    /** Nothing where nothing is known of the instance yet. @throws ERR_CLOSED. */
    private readonly reach: (plugin: PluginInfo) => Reach | undefined,
    /** Whose calls are held back, by `nameOf`. */
    private readonly holds?: CallHolds,
  ) {
    setMaxListeners(0, this.#closing.signal) // each call that waits to be made again has one
  }

  /** Ends the wait of calls that were to be made again. `reach` is to throw from then on. */
  close(): void {
    this.#closing.abort()
  }

  /** @throws ERR_PLUGIN_UNKNOWN where no kind has the type. */
  kindOf(type: PluginType): PluginKind {
    const kind = this.kinds.find(({ types }) => types.includes(type))
    if (kind) return kind
    throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `no plugin kind of this host has the type ${type}`)
  }

  /**
   * A client of the newest healthy one, else of the newest, of what `instances` gives at each call, newest first. `what` names it in
   * errors. Calls reject with ERR_PLUGIN_UNKNOWN where there is none, and ERR_PLUGIN_NOT_READY where none is connected.
   *
   * @throws ERR_PLUGIN_UNKNOWN where no kind has the type, or the kind has no client.
   */
  of(type: PluginType, what: string, instances: () => readonly PluginInfo[]): unknown {
    const kind = this.kindOf(type)
    const gone: PluginGone = (channel, signal) => this.#gone.get(channel)?.(signal) ?? new Promise(() => undefined)
    const held = (): Promise<void> | undefined => this.holds?.held(what)
    if (kind.client) return kind.client(() => this.#pick(instances(), what), gone, this.#closing.signal, held)
    throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `the plugin kind of ${type} has no client`)
  }

  /** Whether calls to a plugin are held back: it is being replaced. */
  isHeld(plugin: Pick<PluginInfo, 'type' | 'name'>): boolean {
    return this.holds?.held(nameOf(plugin)) !== undefined
  }

  /** For the registry: a client of exactly the instance that is asked for. */
  dispensers(): Readonly<Record<string, (plugin: PluginInfo) => unknown>> {
    const types = this.kinds.filter((kind) => kind.client !== undefined).flatMap((kind) => kind.types)
    return Object.fromEntries(
      types.map((type) => [type, (plugin: PluginInfo) => this.of(type, nameOf(plugin), () => [plugin])]),
    )
  }

  #pick(instances: readonly PluginInfo[], what: string): PluginChannel {
    const reached = instances.map((plugin) => this.reach(plugin))
    if (instances.length === 0) throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', `${what} is not registered`)
    const best = reached.find((one) => one?.healthy) ?? reached[0]
    if (best?.channel) {
      this.#gone.set(best.channel, best.gone)
      return best.channel
    }
    const why = best?.description ?? 'nothing is known of it yet'
    throw new PlugstreamError('ERR_PLUGIN_NOT_READY', `${what} cannot be called: ${why}`, { retryable: true })
  }
}

/** For people. */
export function nameOf({ type, name }: Pick<PluginInfo, 'type' | 'name'>): string {
  return `${type} plugin ${JSON.stringify(name)}`
}
