import { setImmediate as nextTurn } from 'node:timers/promises'
import { Metadata, status, type ServiceError } from '@grpc/grpc-js'
import { invalidOption, messageOf, PlugstreamError } from '../errors.js'
import type { PluginFacts } from '../plugin/fingerprint.js'
import type { LinkState, PluginChannel, PluginIdentity, ProbeAnswer } from '../plugin/kind.js'
import type { PluginType } from '../plugin/plugin.js'
import { readFacts, readIdentity } from './facts.js'
import { Link } from './link.js'
import { probe } from './probe.js'
import { rpcDefinitions, type CsiCallOptions, type CsiRequest, type CsiResponse, type CsiRpc } from './rpcs.js'
import { rpcError } from './status.js'

/** About 25 days: the longest a timer of Node can wait, in whole seconds, since servers are told of no smaller part of such a time. */
const longestTimeoutMs = 2_147_483_000

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
  readonly #inFlight = new Set<Promise<object>>()
  #answered = 0

  /**
   * @param rpcTimeoutMs the deadline of calls that bring none of their own.
   * @throws ERR_SOCKET_PATH where the path is too long for a socket.
   */
  constructor(socketPath: string, rpcTimeoutMs: number) {
    this.#link = new Link(socketPath)
    this.#rpcTimeoutMs = rpcTimeoutMs
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
    options?: CsiCallOptions,
  ): Promise<CsiResponse<Rpc>> {
    const timeoutMs = options?.timeoutMs
    if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= longestTimeoutMs))
      throw invalidOption('timeoutMs', timeoutMs, `a number of ms from 1 to ${longestTimeoutMs}`)
    const response = await this.#send(rpc, request, options)
    this.#answered++
    return response
  }

  probe(signal: AbortSignal): Promise<ProbeAnswer> {
    // Not through `call`: a probe is no sign of life besides itself. Its signal alone ends it, or a shorter deadline of calls would
    // make a plugin that hangs look like one that answers with an error.
    return probe((rpc, request, options) => this.#send(rpc, request, { ...options, timeoutMs: Infinity }), signal)
  }

  identify(signal: AbortSignal): Promise<PluginIdentity> {
    return readIdentity((...call) => this.call(...call), signal)
  }

  fingerprint(type: PluginType, signal: AbortSignal): Promise<PluginFacts> {
    return readFacts((...call) => this.call(...call), type, signal)
  }

  /** Refuses new calls at once, lets those in flight finish, and resolves when every connection is gone. Idempotent. */
  close(): Promise<void> {
    return this.#link.close(() => Promise.allSettled(this.#inFlight))
  }

  async #send<Rpc extends CsiRpc>(
    rpc: Rpc,
    request: CsiRequest<Rpc> = {} as CsiRequest<Rpc>,
    { signal, timeoutMs = this.#rpcTimeoutMs }: CsiCallOptions = {},
  ): Promise<CsiResponse<Rpc>> {
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw invalidOption('signal', signal, 'an AbortSignal')
    if (this.#link.closed) throw closed(rpc)
    if (signal?.aborted) throw aborted(rpc, signal)

    const definition = rpcDefinitions().get(rpc)
    if (!definition) throw invalidOption('rpc', rpc, 'the name of a CSI call')
    const message = serialized(rpc, definition.requestSerialize, request)
    const wasLost = this.#link.noteLosses()
    const answer = new Promise<object>((resolve, reject) => {
      const call = this.#link.client.makeUnaryRequest(
        definition.path,
        (bytes: Buffer) => bytes,
        definition.responseDeserialize,
        message,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          signal?.removeEventListener('abort', cancel)
          if (error) reject(error)
          else resolve(response as object)
        },
      )
      const cancel = () => call.cancel()
      signal?.addEventListener('abort', cancel)
    })
    this.#inFlight.add(answer)
    try {
      return (await answer) as CsiResponse<Rpc>
    } catch (error) {
      throw await failure(rpc, request, error as ServiceError, signal, wasLost)
    } finally {
      this.#inFlight.delete(answer)
    }
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
  if (error.code === status.CANCELLED && signal?.aborted) return aborted(rpc, signal)
  if (!mayBeOfConnection(error)) return rpcError(rpc, error, request, false)
  if (error.details.startsWith('Channel closed before')) return closed(rpc)
  // The client's words, since by now there may be a connection.
  const hadNone = error.details.startsWith('No connection established')
  // If it was the connection, its end is known in the next turn at the latest.
  await nextTurn()
  return rpcError(rpc, error, request, hadNone || wasLost())
}

/** Whether the client may have made the error itself because a connection ended. A plugin may answer with any of these, too. */
function mayBeOfConnection({ code, details }: ServiceError): boolean {
  const isReset = code === status.INTERNAL && details.startsWith('Received RST_STREAM')
  return code === status.UNAVAILABLE || code === status.CANCELLED || isReset
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

function closed(rpc: string): PlugstreamError {
  return new PlugstreamError('ERR_CLOSED', `${rpc}: the channel is closed`, { details: { rpc } })
}

function aborted(rpc: string, { reason }: AbortSignal): PlugstreamError {
  const init = { cause: reason as unknown, details: { rpc } }
  const timedOut = reason instanceof Error && reason.name === 'TimeoutError'
  return timedOut
    ? new PlugstreamError('ERR_TIMEOUT', `${rpc}: timed out`, init)
    : new PlugstreamError('ERR_ABORTED', `${rpc}: aborted`, init)
}
