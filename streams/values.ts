import type { Observable, ObservableInput } from 'rxjs'
import type { PluginFacts } from '../lib/plugin/fingerprint.js'
import type { HealthReason } from '../lib/plugin/health.js'
import type { ChannelOptions, LinkState, PluginChannel, PluginIdentity, ProbeAnswer } from '../lib/plugin/kind.js'
import type { PluginInfo, PluginRef, PluginType, RegistryEvent } from '../lib/plugin/plugin.js'

/**
 * What the host's tasks are doing, as far as it was told. `run` grows with every start, so that no two runs are mistaken; it is 0 before the
 * first, and of a run that was there before the host.
 */
export interface TaskState {
  /** `exited` stays until the next start, `starting` is before the first. */
  phase: 'unknown' | 'starting' | 'running' | 'exited' | 'stopping' | 'stopped'
  run: number
  /** For people: how it exited. */
  description: string
}

/** One channel to one server, as a value. Its calls are cold: each subscription is one call, unsubscribing aborts it. */
export interface Connection {
  /** Present state first, then every change; ends never. */
  link$: Observable<LinkState>
  /** How many calls other than probes were answered so far. */
  answered(): number
  probe(): ObservableInput<ProbeAnswer>
  /** See `PluginChannel.watch`. Absent: the plugin cannot tell. */
  watch?: () => ObservableInput<unknown>
  identify(): ObservableInput<Partial<PluginIdentity>>
  fingerprint(type: PluginType): ObservableInput<PluginFacts>
  channel: PluginChannel
}

/** What is known of the server behind one socket. Told when anything in it changes. */
export interface ConnectionState {
  healthy: boolean
  reason: HealthReason
  description: string
  /** It answered the last look, if only with "not yet" or an error. */
  answers: boolean
  /** Grows with every new connection to a server: what was read over an older one is not known of this one. */
  epoch: number
  /** Absent while nothing is there to be called. */
  connection: Connection | undefined
}

/** Which socket is meant: a new run of its task is a new target, so that nothing of the old run is taken for the new. */
export interface ConnectionTarget {
  type: PluginType
  socketPath: string
  run: number
  /** What the kind has to be told of its registration, see `PluginKind.channelOptions`. Default: nothing. */
  options?: ChannelOptions
}

/** A registered instance, as a value with its own streams. */
export interface PluginInstance {
  ref: PluginRef
  /** Its registration was restored from the store. */
  restored: boolean
  /** The instance now, then after every update; completes when it goes. */
  plugin$: Observable<PluginInfo>
  /** Task state and connection in one; the newest first, nothing before something is known; completes when the instance goes. */
  state$: Observable<ConnectionState>
  /** The event that took it from the registry; one, then complete. */
  gone$: Observable<RegistryEvent>
}
