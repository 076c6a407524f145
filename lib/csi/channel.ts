import { setImmediate as nextTurn } from 'node:timers/promises'
import { status, type ClientReadableStream, type ServiceError } from '@grpc/grpc-js'
import { abortedError, invalidOption, messageOf, PlugstreamError } from '../errors.js'
import { asIs, endOf, unaryCall } from '../grpc/call.js'
import { Link } from '../grpc/link.js'
import { messagesOf } from '../grpc/stream-messages.js'
import type { Capabilities, PluginFacts } from '../plugin/fingerprint.js'
import type { LinkState, PluginChannel, PluginIdentity, ProbeAnswer } from '../plugin/kind.js'
import type { PluginType } from '../plugin/plugin.js'
import { checkOptions } from './call-options.js'
import { CapabilityMemory } from './capability-memory.js'
import { readFacts, readIdentity } from './facts.js'
import type { CapabilityList } from './needs.js'
import { probe } from './probe.js'
import {
  rpcDefinition,
  type CsiCallOptions,
  type CsiRequest,
  type CsiResponse,
  type CsiRpc,
  type CsiStreamRpc,
  type RpcDefinition,
  type WireRequest,
  type WireResponse,
} from './rpcs.js'
import { rpcError, type CallOutcome } from './status.js'

/**
 * A channel to one CSI plugin on one unix socket. Nothing is dialled before the first call; a connection that is lost is made anew by
 * the next one. Every call but a probe has a deadline.
 *
 * @example
 * const channel = csiKind().open('/run/driver/csi.sock')
 * const { node_id } = await channel.call('NodeGetInfo')
 * await channel.close()
 */
export class CsiChannel implements PluginChannel {
  readonly #link: Link
  readonly #rpcTimeoutMs: number
  readonly #inFlight = new Map<Promise<object>, () => void>()
  readonly #streams = new Set<ClientReadableStream<object>>()
  readonly #capabilities = new CapabilityMemory((...call) => this.call(...call))
  #answered = 0
  /** Calls in flight, probes not counted, and who waits until there are none. */
  #calls = 0
  readonly #whenIdle: (() => void)[] = []
  #isEnded = false

  /**
   * @param rpcTimeoutMs the deadline of calls that bring none of their own.
   * @throws ERR_SOCKET_PATH where the path is too long for a socket.
   */
  constructor(socketPath: string, rpcTimeoutMs: number) {
    this.#link = new Link(socketPath)
    this.#rpcTimeoutMs = rpcTimeoutMs
    this.#link.listen((state) => {
      if (state === 'lost') this.#capabilities.forget() // another version may answer next
    })
  }

  get answered(): number {
    return this.#answered
  }

  onLink(listener: (state: LinkState) => void): () => void {
    return this.#link.listen(listener)
  }

  /** Makes one call; see {@link CsiCall} for what it throws. */
  async call<Rpc extends CsiRpc>(
    rpc: Rpc,
    request?: CsiRequest<Rpc>,
    options: CsiCallOptions = {},
  ): Promise<CsiResponse<Rpc>> {
    checkOptions(options)
    const ended = this.#begun()
    try {
      const response = await this.#send(rpc, request, options)
      this.#answered++
      return response
    } finally {
      ended()
    }
  }

  /** Makes one call that answers with a stream; see {@link CsiStreamCall}. */
  async *stream<Rpc extends CsiStreamRpc>(
    rpc: Rpc,
    request: WireRequest<Rpc> = {} as WireRequest<Rpc>,
    options: CsiCallOptions = {},
  ): AsyncGenerator<WireResponse<Rpc>, void, undefined> {
    checkOptions(options)
    const { signal, timeoutMs = this.#rpcTimeoutMs } = options
    const { definition, message } = this.#ready(rpc, 'stream', request, options)
    const wasLost = this.#link.noteLosses()
    const { path, responseDeserialize } = definition
    const call = this.#link.client.makeServerStreamRequest(path, asIs, responseDeserialize, message)
    this.#streams.add(call)
    const over = this.#begun()
    try {
      for await (const response of messagesOf(call, timeoutMs, signal)) {
        this.#answered++
        yield response as WireResponse<Rpc>
      }
    } catch (error) {
      const ended = error as ServiceError
      if (ended.code === status.CANCELLED && !this.#streams.has(call)) throw closed(rpc)
      throw await failure(rpc, request, ended, signal, wasLost)
    } finally {
      this.#streams.delete(call)
      over()
    }
  }

  /**
   * What the plugin advertises in one of its lists: as last fingerprinted, or else asked for once a connection. Nothing, where it does
   * not know the question.
   *
   * @throws, as a rejection, what {@link CsiCall} throws.
   */
  capabilities(list: CapabilityList): Capabilities | Promise<Capabilities> {
    return this.#capabilities.get(list)
  }

  probe(signal: AbortSignal): Promise<ProbeAnswer> {
    // Not through `call`: a probe is no sign of life besides itself. Its signal alone ends it, or a shorter deadline of calls would
    // make a plugin that hangs look like one that answers with an error.
    return probe((rpc, request, options) => this.#send(rpc, request, { ...options, timeoutMs: Infinity }), signal)
  }

  identify(signal: AbortSignal): Promise<PluginIdentity> {
    return readIdentity((...call) => this.call(...call), signal)
  }

  async fingerprint(type: PluginType, signal: AbortSignal): Promise<PluginFacts> {
    const facts = await readFacts((...call) => this.call(...call), type, signal)
    if (facts.controller) this.#capabilities.learn('controller', facts.controller)
    if (facts.node) this.#capabilities.learn('node', facts.node)
    return facts
  }

  /** Resolves in the first turn in which no call but probes is in flight, and none has begun since the turn before. */
  async idle(): Promise<void> {
    do {
      while (this.#calls > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
      await nextTurn() // one that asked for capabilities goes on now
    } while (this.#calls > 0)
  }

  /**
   * Refuses new calls at once, lets those in flight finish, and resolves when every connection is gone. Streams end with ERR_CLOSED: how
   * long one takes is for its reader to say. Idempotent.
   */
  close(): Promise<void> {
    this.#capabilities.close()
    for (const call of this.#streams) {
      this.#streams.delete(call)
      call.cancel()
    }
    return this.#link.close(() => Promise.allSettled(this.#inFlight.keys()))
  }

  /** Ends the calls that closing left to finish: nobody has the time to wait for them. */
  end(): void {
    this.#isEnded = true
    for (const end of this.#inFlight.values()) end()
  }

  /** A call has begun; what is given back says that it has ended. */
  #begun(): () => void {
    this.#calls++
    return () => {
      this.#calls--
      if (this.#calls === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
    }
  }

  async #send<Rpc extends CsiRpc>(
    rpc: Rpc,
    request: CsiRequest<Rpc> = {} as CsiRequest<Rpc>,
    options: CsiCallOptions = {},
  ): Promise<CsiResponse<Rpc>> {
    const { signal, timeoutMs = this.#rpcTimeoutMs } = options
    const { definition, message } = this.#ready(rpc, 'unary', request, options)
    const wasLost = this.#link.noteLosses()
    const deadline = Date.now() + timeoutMs
    const { answer, cancel } = unaryCall(this.#link.client, definition, message, { signal, deadline })
    this.#inFlight.set(answer, cancel)
    try {
      return (await answer) as CsiResponse<Rpc>
    } catch (error) {
      if (this.#isEnded) throw closed(rpc, 'unknown')
      throw await failure(rpc, request, error as ServiceError, signal, wasLost)
    } finally {
      this.#inFlight.delete(answer)
    }
  }

  /** A call that can be made, as it goes on the wire. */
  #ready(
    rpc: string,
    form: 'unary' | 'stream',
    request: object,
    { signal }: CsiCallOptions,
  ): { definition: RpcDefinition; message: Buffer } {
    if (this.#link.closed) throw closed(rpc)
    if (signal?.aborted) throw aborted(rpc, signal)
    const definition = rpcDefinition(rpc, form)
    if (!definition) throw invalidOption('rpc', rpc, 'the name of a CSI call')
    return { definition, message: serialized(rpc, definition.requestSerialize, request) }
  }
}

/** What the client's error means. */
async function failure(
  rpc: string,
  request: object,
  error: ServiceError,
  signal: AbortSignal | undefined,
  wasLost: () => boolean,
): Promise<PlugstreamError> {
  const end = await endOf(error, signal, wasLost)
  if (end === 'aborted' && signal) return aborted(rpc, signal, 'unknown')
  if (end === 'closed') return closed(rpc)
  return rpcError(rpc, error, request, end === 'lost' || end === 'none' ? end : undefined)
}

function serialized(rpc: string, serialize: (request: object) => Buffer, request: object): Buffer {
  try {
    return serialize(request)
  } catch (failed) {
    throw new PlugstreamError('ERR_OPTION_INVALID', `the request of ${rpc} does not fit: ${messageOf(failed)}`, {
      details: { rpc },
    })
  }
}

function closed(rpc: string, outcome?: CallOutcome): PlugstreamError {
  return new PlugstreamError('ERR_CLOSED', `${rpc}: the channel is closed`, {
    details: { rpc, ...(outcome && { outcome }) },
  })
}

function aborted(rpc: string, signal: AbortSignal, outcome?: CallOutcome): PlugstreamError {
  return abortedError(rpc, signal, { details: { rpc, ...(outcome && { outcome }) } })
}
