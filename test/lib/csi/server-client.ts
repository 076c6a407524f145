import { Client, Metadata, credentials, type ServiceError } from '@grpc/grpc-js'
import { csiProto } from '../../../lib/csi/proto.js'

type ServiceName = 'Identity' | 'Controller' | 'Node' | 'GroupController' | 'SnapshotMetadata'

/** A bare gRPC client of any CSI server, so that the server kit is not tested by a client of its own house. */
export class RawClient {
  readonly #client: Client

  constructor(socketPath: string) {
    this.#client = new Client(`unix://${socketPath}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.default_authority': 'localhost',
      'grpc.initial_reconnect_backoff_ms': 20,
      'grpc.max_reconnect_backoff_ms': 50,
    })
  }

  call(
    rpc: `${ServiceName}.${string}`,
    request: object = {},
    signal?: AbortSignal,
    options: { waitForReady?: boolean } = {},
  ): Promise<Record<string, unknown>> {
    const { path, requestSerialize, responseDeserialize } = method(rpc)
    return new Promise((resolve, reject) => {
      const answer = (error: ServiceError | null, response?: object): void =>
        error ? reject(error) : resolve(response as Record<string, unknown>)
      const deadline = { deadline: Date.now() + 15_000 }
      const metadata = new Metadata(options)
      const call = this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        deadline,
        answer,
      )
      signal?.addEventListener('abort', () => call.cancel())
    })
  }

  /** The status a call fails with. */
  async failure(
    rpc: `${ServiceName}.${string}`,
    request: object = {},
    signal?: AbortSignal,
  ): Promise<{ code: number; details: string }> {
    try {
      await this.call(rpc, request, signal)
    } catch (error) {
      return error as ServiceError
    }
    throw new Error(`${rpc} was expected to fail`)
  }

  stream(rpc: `${ServiceName}.${string}`, request: object = {}): AsyncIterable<object> & { cancel(): void } {
    const { path, requestSerialize, responseDeserialize } = method(rpc)
    return this.#client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request)
  }

  /** Not in the turn of the first call: grpc would leave the connection open. */
  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#client.close()
  }
}

function method(rpc: string) {
  const [service, name] = rpc.split('.') as [ServiceName, string]
  const definition = csiProto()[service].service[name]
  if (!definition) throw new Error(`there is no ${rpc}`)
  return definition
}
