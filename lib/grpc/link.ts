import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ChannelCredentials, Client, connectivityState, type ChannelOptions } from '@grpc/grpc-js'
import { socketPathLimitBytes } from '../defaults.js'
import { PlugstreamError } from '../errors.js'
import type { LinkState } from '../plugin/kind.js'

const options: ChannelOptions = {
  // Shared subchannels would share their backoff: a new channel to a new server would inherit the pause of the old one.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 20,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // Servers in Node and Rust refuse the path of a socket as a name.
  'grpc.default_authority': 'localhost',
  // A long list of volumes is more than the 4 MiB that gRPC takes by itself.
  'grpc.max_receive_message_length': 16 * 1024 * 1024,
  // A connection that this side dropped for being idle would look as if the plugin had.
  'grpc.client_idle_timeout_ms': 2 ** 31 - 1,
  'grpc.enable_channelz': 0,
}

/** One gRPC client on one unix socket: what state its connection is in, and an end that leaves nothing behind. */
export class Link {
  readonly client: Client
  #losses = 0
  #state: LinkState = 'idle'
  readonly #listeners = new Set<{ hear(state: LinkState): void }>()
  readonly #sockets = new Set<Socket>()
  #closing: Promise<void> | undefined

  /** @throws ERR_SOCKET_PATH where the path is too long: Node would cut it, and could reach another plugin's socket. */
  constructor(socketPath: string) {
    const lengthBytes = Buffer.byteLength(socketPath)
    if (lengthBytes > socketPathLimitBytes) {
      const limit = `a socket path may have ${socketPathLimitBytes}`
      throw new PlugstreamError('ERR_SOCKET_PATH', `the path has ${lengthBytes} bytes; ${limit}: ${socketPath}`)
    }
    this.client = new Client(`unix:${socketPath}`, this.#credentials(), options)
    this.#watch()
  }

  get state(): LinkState {
    return this.#state
  }

  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Tells later whether, since now, a connection was lost or none could be had. */
  noteLosses(): () => boolean {
    const losses = this.#losses
    return () =>
      this.closed
        ? [...this.#sockets].every(({ destroyed }) => destroyed)
        : this.#state !== 'connected' || this.#losses !== losses
  }

  /** Hears the present state in the call itself, then every change, until it is called off or the link closes. */
  listen(hear: (state: LinkState) => void): () => void {
    const listener = { hear }
    if (!this.closed) this.#listeners.add(listener)
    hear(this.#state)
    return () => void this.#listeners.delete(listener)
  }

  /** Resolves when every connection is gone. `done` is what still runs over them. */
  close(done: () => Promise<unknown>): Promise<void> {
    this.#closing ??= this.#close(done)
    return this.#closing
  }

  async #close(done: () => Promise<unknown>): Promise<void> {
    this.#listeners.clear()
    // A client that is closed in the turn of its first call connects all the same, and for ever.
    await nextTurn()
    this.client.close()
    await done()
    await Promise.all([...this.#sockets].map(ended))
  }

  #watch(): void {
    const channel = this.client.getChannel()
    // Without a deadline, since one would hold the process until it passes.
    channel.watchConnectivityState(channel.getConnectivityState(false), Infinity, () => {
      if (channel.getConnectivityState(false) === connectivityState.SHUTDOWN) return
      this.#watch()
      this.#change(channel.getConnectivityState(false))
    })
  }

  #change(seen: connectivityState): void {
    const connected = seen === connectivityState.READY
    if (this.#state === 'connected' && !connected) {
      this.#losses++
      this.#turn('lost')
    }
    if (connected) this.#turn('connected')
    else if (seen === connectivityState.CONNECTING) this.#turn('connecting')
    else if (this.#state === 'connecting') this.#turn('idle')
  }

  /** Listeners hear in a microtask: they may call, which is not to happen in the middle of the client's own change of state. */
  #turn(state: LinkState): void {
    this.#state = state
    for (const listener of this.#listeners) {
      queueMicrotask(() => {
        if (this.#listeners.has(listener)) listener.hear(state)
      })
    }
  }

  /**
   * The credentials are where the client hands out its sockets. They are kept so that closing can end all of them: by itself, the
   * client leaves a connection open on which the server never said anything.
   */
  #credentials(): ChannelCredentials {
    const credentials = ChannelCredentials.createInsecure()
    const createConnector = credentials._createSecureConnector.bind(credentials)
    credentials._createSecureConnector = (...target) => {
      const connector = createConnector(...target)
      const connect = async (socket: Socket) => {
        // The client may have one more attempt under way, and would keep what comes of it.
        if (this.closed) throw new Error('the channel is closed')
        this.#sockets.add(socket)
        socket.once('close', () => this.#sockets.delete(socket))
        return connector.connect(socket)
      }
      return { ...connector, connect }
    }
    return credentials
  }
}

function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    socket.destroy()
  })
}
