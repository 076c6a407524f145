import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { healthTimeoutMs, initTimeoutMs } from '../../lib/defaults.js'
import { invalidOption, messageOf, PlugstreamError } from '../../lib/errors.js'
import type { PluginFacts } from '../../lib/plugin/fingerprint.js'
import type { LinkState, PluginChannel, PluginIdentity, PluginKind, ProbeAnswer } from '../../lib/plugin/kind.js'

/** What a toy plugin answers to each word it is sent, one line each. */
export interface ToyAnswers {
  ready: boolean
  who: { provider: string; version: string }
  toys: readonly string[]
}

export interface ToyClient {
  toys(): Promise<readonly string[]>
}

/** A second kind of plugin: a word a line over the socket, a line of JSON back. No gRPC, no CSI. */
export const toyKind: PluginKind = {
  kind: 'toy',
  types: ['toy'],
  configure: ({ plugin }) => {
    if (plugin?.id === undefined || plugin.id === '') throw invalidOption('plugin.id', plugin?.id, 'the name of a toy')
    return {
      id: plugin.id,
      types: ['toy'],
      healthTimeoutMs: plugin.healthTimeoutMs ?? healthTimeoutMs,
      initTimeoutMs: plugin.initTimeoutMs ?? initTimeoutMs,
      socketName: 'toy.sock',
      mountDir: '/toy',
      volumeDir: '/toys',
      endpointVariable: 'TOY_ENDPOINT',
    }
  },
  open: (socketPath) => new ToyChannel(socketPath),
  client: (pick): ToyClient => ({ toys: async () => ofToy(pick()).ask('toys') }),
}

function ofToy(channel: PluginChannel): ToyChannel {
  if (channel instanceof ToyChannel) return channel
  throw new PlugstreamError('ERR_USAGE', 'that is no toy')
}

class ToyChannel implements PluginChannel {
  answered = 0
  #state: LinkState = 'idle'
  #socket: Socket | undefined
  #closed = false
  readonly #listeners = new Set<(state: LinkState) => void>()
  readonly #waiting: ((line: string | Error) => void)[] = []

  constructor(private readonly socketPath: string) {}

  onLink(listener: (state: LinkState) => void): () => void {
    this.#listeners.add(listener)
    listener(this.#state)
    return () => void this.#listeners.delete(listener)
  }

  async probe(signal: AbortSignal): Promise<ProbeAnswer> {
    try {
      const ready = await this.#send<boolean>('ready', signal)
      return ready ? { kind: 'ready' } : { kind: 'not-ready', description: 'the toy is being wound up' }
    } catch (failure) {
      return { kind: 'unreachable', description: messageOf(failure) }
    }
  }

  identify(signal: AbortSignal): Promise<PluginIdentity> {
    return this.ask('who', signal)
  }

  async fingerprint(_type: string, signal: AbortSignal): Promise<PluginFacts> {
    const names = await this.ask<ToyAnswers['toys']>('toys', signal)
    return { requiresControllerPlugin: false, requiresTopologies: false, node: { id: 'toy', names, unknown: [] } }
  }

  async ask<T>(word: keyof ToyAnswers, signal?: AbortSignal): Promise<T> {
    const answer = await this.#send<T>(word, signal)
    this.answered++
    return answer
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
    const socket = this.#socket
    if (!socket || socket.destroyed) return
    await new Promise((resolve) => socket.once('close', resolve).destroy())
  }

  #send<T>(word: keyof ToyAnswers, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new PlugstreamError('ERR_CLOSED', 'the channel is closed'))
      signal?.addEventListener('abort', () => reject(new PlugstreamError('ERR_ABORTED', word)), { once: true })
      this.#waiting.push((line) => (line instanceof Error ? reject(line) : resolve(JSON.parse(line) as T)))
      this.#connected().write(`${word}\n`)
    })
  }

  #connected(): Socket {
    if (this.#socket) return this.#socket
    const socket = connect(this.socketPath)
    this.#socket = socket
    createInterface({ input: socket })
      .on('line', (line) => this.#waiting.shift()?.(line))
      .on('error', () => undefined) // the close says it
    socket.once('connect', () => this.#turn('connected'))
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#socket = undefined
      for (const done of this.#waiting.splice(0)) done(new Error('the connection is gone'))
      this.#turn(this.#state === 'connected' ? 'lost' : 'idle')
    })
    this.#turn('connecting')
    return socket
  }

  #turn(state: LinkState): void {
    this.#state = state
    for (const listener of [...this.#listeners]) listener(state)
  }
}
