import { setImmediate as nextTurn } from 'node:timers/promises'
import { status, type ServiceError } from '@grpc/grpc-js'
import { PlugstreamError } from '../errors.js'
import type { PluginFacts } from '../plugin/fingerprint.js'
import type { LinkState, PluginChannel, PluginIdentity, ProbeAnswer } from '../plugin/kind.js'
import { asIs, unaryCall, type CallDefinition } from './call.js'
import type { HealthCheckResponse__Output } from '../csi/generated/grpc/health/v1/HealthCheckResponse.js'
import { meaningOfFailure, meaningOfStatus } from './health.js'
import { Link } from './link.js'
import { healthProto } from './proto.js'
import { messagesOf } from './stream-messages.js'
import type { CreateCall, GrpcCall } from './wire-call.js'

/** One that lasts as long as its signal lets it: no deadline of a call's own. */
const noDeadline = Infinity

/**
 * A channel to one gRPC server on one unix socket, which is asked for its health as in `grpc.health.v1`. Nothing is dialled before the
 * first call; a connection that is lost is made anew by the next one.
 *
 * @example
 * const channel = grpcKind().open('/run/web/grpc.sock', { service: 'acme.Web' })
 * await channel.probe(AbortSignal.timeout(3_000)) // { kind: 'ready' }
 */
export class GrpcChannel implements PluginChannel {
  readonly #link: Link
  readonly #service: string
  readonly #inFlight = new Map<Promise<void>, GrpcCall>()
  readonly #watches = new Set<() => void>()
  #answered = 0

  /**
   * @param service the name that its health is asked for; empty: the server as a whole.
   * @throws ERR_SOCKET_PATH where the path is too long for a socket.
   */
  constructor(socketPath: string, service: string) {
    this.#link = new Link(socketPath)
    this.#service = service
  }

  get answered(): number {
    return this.#answered
  }

  onLink(listener: (state: LinkState) => void): () => void {
    return this.#link.listen(listener)
  }

  /** By Check. An answer of any sort is a value. @throws ERR_ABORTED or ERR_TIMEOUT where the signal was what ended it. */
  async probe(signal: AbortSignal): Promise<ProbeAnswer> {
    if (this.#link.closed) return { kind: 'unreachable', description: 'the channel is closed' }
    const service = this.#service
    const wasLost = this.#link.noteLosses()
    const { definition, message } = this.#asked('Check')
    try {
      const { answer } = unaryCall(this.#link.client, definition, message, { signal, deadline: noDeadline })
      return meaningOfStatus(((await answer) as HealthCheckResponse__Output).status, service)
    } catch (error) {
      return meaningOfFailure(error as ServiceError, { service, signal, wasLost })
    }
  }

  /** By Watch: a value for each status it tells. Ends where the server has no Watch. @throws ERR_PLUGIN_NOT_READY where it was cut short. */
  async *watch(signal: AbortSignal): AsyncGenerator<undefined, void, undefined> {
    if (this.#link.closed || signal.aborted) return
    const { definition, message } = this.#asked('Watch')
    const call = this.#link.client.makeServerStreamRequest(
      definition.path,
      asIs,
      definition.responseDeserialize,
      message,
    )
    const cancel = (): void => call.cancel()
    this.#watches.add(cancel)
    try {
      for await (const _ of messagesOf(call, undefined, signal)) yield undefined
      throw new PlugstreamError('ERR_PLUGIN_NOT_READY', 'Watch: the server ended it', { retryable: true })
    } catch (error) {
      if ((error as Partial<ServiceError>).code === status.UNIMPLEMENTED) return
      throw PlugstreamError.from(error, 'ERR_PLUGIN_NOT_READY', 'Watch', { retryable: true })
    } finally {
      this.#watches.delete(cancel)
    }
  }

  /** It has no way to say who it is. */
  identify(): Promise<Partial<PluginIdentity>> {
    return Promise.resolve({})
  }

  /** It has no way to say what it can do, either. */
  fingerprint(): Promise<PluginFacts> {
    return Promise.resolve({ requiresControllerPlugin: false, requiresTopologies: false })
  }

  /**
   * A call of any service, as clients of grpc-js make it.
   *
   * @throws ERR_CLOSED after `close()`.
   */
  createCall(...args: Parameters<CreateCall>): GrpcCall {
    if (this.#link.closed) throw new PlugstreamError('ERR_CLOSED', 'the channel is closed')
    const call = this.#link.client.getChannel().createCall(...args)
    const start = call.start.bind(call)
    call.start = (metadata, listener) => {
      let end = (): void => undefined
      const ended = new Promise<void>((resolve) => (end = resolve))
      this.#inFlight.set(ended, call)
      start(metadata, {
        onReceiveMetadata: (received) => listener.onReceiveMetadata(received),
        onReceiveMessage: (received) => {
          this.#answered++
          listener.onReceiveMessage(received)
        },
        onReceiveStatus: (received) => {
          this.#inFlight.delete(ended)
          end()
          listener.onReceiveStatus(received)
        },
      })
    }
    return call
  }

  /** Resolves in the first turn in which no call is in flight, streams too, and none has begun since the turn before. */
  async idle(): Promise<void> {
    do {
      await Promise.all(this.#inFlight.keys())
      await nextTurn()
    } while (this.#inFlight.size > 0)
  }

  /** Refuses new calls at once, lets those in flight finish, streams too, and resolves when every connection is gone. Idempotent. */
  close(): Promise<void> {
    for (const cancel of this.#watches) cancel()
    return this.#link.close(() => Promise.all(this.#inFlight.keys()))
  }

  /** Ends the calls that closing left to finish. */
  end(): void {
    for (const call of this.#inFlight.values()) call.cancelWithStatus(status.CANCELLED, 'the host was closed')
  }

  #asked(rpc: 'Check' | 'Watch'): { definition: CallDefinition; message: Buffer } {
    const definition = healthProto().Health.service[rpc] as CallDefinition
    return { definition, message: definition.requestSerialize({ service: this.#service }) }
  }
}
