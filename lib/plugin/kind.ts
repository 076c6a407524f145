import type { PluginTask } from '../task/task.js'
import type { PluginFacts } from './fingerprint.js'
import type { PluginType } from './plugin.js'

/**
 * A plugin kind is a port: which plugin types a task's configuration registers, how its socket is named, probed and asked who it is,
 * and how it is fingerprinted. CSI is the first.
 */
export interface PluginKind {
  /** The name in `PluginTask.plugin.kind`, and of this kind's folder in the state directory. */
  readonly kind: string
  /** Every plugin type of this kind. No two kinds of a host share one. */
  readonly types: readonly PluginType[]
  /**
   * Reads and checks the configuration of a task.
   * @throws ERR_OPTION_INVALID naming the field.
   */
  configure(task: PluginTask): PluginTaskConfig
  /**
   * The names of those options of a registration that `open` has to be told: what a channel is asked depends on them. Where one of them
   * changes, there is a new channel. Default: none.
   */
  readonly channelOptions?: readonly string[]
  /** Opens a channel to one socket. Nothing is dialled before the first call. `options` are those that `channelOptions` names, where there. */
  open(socketPath: string, options: ChannelOptions): PluginChannel
  /**
   * A client over whatever channel `pick` gives at each call (`host.client`, and the default of `registry.dispense`). One and the same
   * channel stands for one and the same server; `gone` tells when the process behind one is no more, and `closing` when `pick` will give
   * none any more: what waits to call again need not wait longer. While `held` gives something, calls are to wait for it, each as long
   * as it has time, and then to ask it again: the plugin is being replaced.
   */
  client?(pick: () => PluginChannel, gone?: PluginGone, closing?: AbortSignal, held?: PluginHeld): unknown
}

/** What a channel is told of the registration that it is opened for. */
export type ChannelOptions = Readonly<Record<string, string>>

/** Resolves when calls to a plugin that are held back may go on; nothing where they are not held. */
export type PluginHeld = () => Promise<void> | undefined

/**
 * Resolves once the process behind a channel that was picked before is gone, so that nothing it was asked to do is still under way. Where
 * it cannot be told, it does not resolve; the signal ends the wait.
 */
export type PluginGone = (channel: PluginChannel, signal: AbortSignal) => Promise<unknown>

/** What a task's configuration comes to. */
export interface PluginTaskConfig {
  /** Plugin name. */
  id: string
  /** What is registered, in order, once the plugin is ready. */
  types: readonly PluginType[]
  /** Two of them may serve at the same time, so that one can take the place of another beside it. Default: false. */
  overlaps?: boolean
  healthTimeoutMs: number
  initTimeoutMs: number
  /** File name of the socket in its directory, as in `csi.sock`. */
  socketName: string
  /** Where the task sees the directory of its socket. */
  mountDir: string
  /** Where the task sees the volume directory. Absent: its plugins have no volumes, and no mount of theirs has to be seen by the host. */
  volumeDir?: string
  /** Options it is registered with, besides those that every plugin of a task has. Default: none. */
  options?: Readonly<Record<string, string>>
  /** What is known of the plugin beforehand; what it says of itself goes before that. Default: nothing. */
  identity?: Partial<PluginIdentity>
  /** The variable that tells the task its endpoint, as in `CSI_ENDPOINT`; absent: none. */
  endpointVariable?: string
}

/** What a channel tells of its connection. `lost` comes at once when an established one ends. */
export type LinkState = 'idle' | 'connecting' | 'connected' | 'lost'

/** What one probe came to. Never thrown. */
export type ProbeAnswer =
  | { kind: 'ready' }
  | { kind: 'not-ready'; description: string } // still initialising
  | { kind: 'failed'; description: string } // answered with an error
  | { kind: 'not-served'; description: string } // speaks, but not this kind's protocol
  | { kind: 'not-csi'; description: string } // the same, where that is CSI
  | { kind: 'unreachable'; description: string } // no connection could be had, or it was lost on the way

/** Who a plugin says it is. */
export interface PluginIdentity {
  provider: string
  version: string
}

/** One channel to one server on one socket. Its calls reject with a PlugstreamError, ERR_ABORTED or ERR_TIMEOUT where the signal was aborted. */
export interface PluginChannel {
  /** Hears the present state in the call itself, then every change, until the function given back is called or the channel closes. */
  onLink(listener: (state: LinkState) => void): () => void
  /** How many calls other than probes were answered so far: a busy plugin that misses a probe is alive all the same. */
  readonly answered: number
  probe(signal: AbortSignal): Promise<ProbeAnswer>
  /**
   * Where a plugin can tell by itself that it has changed: each value, whatever it is, says that it is time for a probe. It ends where
   * this server does not tell, and throws where its telling was cut short. Asked for over each new connection; the beat of the probes
   * goes on beside it.
   */
  watch?(signal: AbortSignal): AsyncIterable<unknown>
  /**
   * Who the plugin says it is; of what it does not say, the registration is believed.
   *
   * @throws ERR_CSI_UNSUPPORTED where the server does not know the question: it is no plugin of this kind.
   */
  identify(signal: AbortSignal): Promise<Partial<PluginIdentity>>
  fingerprint(type: PluginType, signal: AbortSignal): Promise<PluginFacts>
  /** Resolves as soon as no call but probes is in flight. Default: nobody can tell, and nothing is waited for. */
  idle?(): Promise<void>
  /** Resolves when the connection is gone. Calls in flight may finish. Idempotent. */
  close(): Promise<void>
  /** Ends the calls that closing left to finish. Default: they are waited for. */
  end?(): void
}
