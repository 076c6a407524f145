import type { MethodDefinition } from '@grpc/proto-loader'
import type { CallDefinition } from '../grpc/call.js'
import type { ControllerDefinition } from './generated/csi/v1/Controller.js'
import type { GroupControllerDefinition } from './generated/csi/v1/GroupController.js'
import type { IdentityDefinition } from './generated/csi/v1/Identity.js'
import type { NodeDefinition } from './generated/csi/v1/Node.js'
import type { SnapshotMetadataDefinition } from './generated/csi/v1/SnapshotMetadata.js'
import { csiProto } from './proto.js'

/** The calls of a service, without the index signature that the generated types carry. */
type Calls<Service> = {
  [Rpc in keyof Service as string extends Rpc ? never : number extends Rpc ? never : Rpc]: Service[Rpc]
}
type AllCalls = Calls<IdentityDefinition> &
  Calls<ControllerDefinition> &
  Calls<GroupControllerDefinition> &
  Calls<SnapshotMetadataDefinition> &
  Calls<NodeDefinition>

/** Every call of the five CSI services. */
export type AnyCsiRpc = keyof AllCalls

/** Those that answer with a stream of messages. */
export type CsiStreamRpc = 'GetMetadataAllocated' | 'GetMetadataDelta'

/** Those that have one answer. */
export type CsiRpc = Exclude<AnyCsiRpc, CsiStreamRpc>

/** What a call takes on the wire; every field may be left out. */
export type WireRequest<Rpc extends AnyCsiRpc> =
  AllCalls[Rpc] extends MethodDefinition<infer Request extends object, infer _R, infer _Q, infer _A> ? Request : never

/** What it answers; int64 as decimal text, enum values by name (by number where the name is not known), what is absent as null. */
export type WireResponse<Rpc extends AnyCsiRpc> =
  AllCalls[Rpc] extends MethodDefinition<infer _Q, infer _R, infer _A, infer Response extends object> ? Response : never

/** What a call with one answer takes on the wire. */
export type CsiRequest<Rpc extends CsiRpc> = WireRequest<Rpc>

/** What it answers on the wire. */
export type CsiResponse<Rpc extends CsiRpc> = WireResponse<Rpc>

export interface CsiCallOptions {
  signal?: AbortSignal | undefined
  /** The call's deadline. Default: `Timing.rpcTimeoutMs`. */
  timeoutMs?: number | undefined
}

/**
 * Makes one call. Never throws in the call itself.
 *
 * @throws ERR_CSI_RPC where the plugin or the connection answers with an error, the deadline included; `details` hold `rpc`,
 * `grpcCode` (as in `NOT_FOUND`), `grpcDetails` (what the plugin said) and `outcome` (see {@link outcomeOf}); where the connection was
 * what failed, also `connectionLost`, and `sent: false` where there was none to send it over. `retryable` then, and for UNAVAILABLE,
 * DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and ABORTED.
 * @throws ERR_ABORTED, or ERR_TIMEOUT for a signal of `AbortSignal.timeout`, ERR_CLOSED after `close()`, ERR_OPTION_INVALID.
 */
export type CsiCall = <Rpc extends CsiRpc>(
  rpc: Rpc,
  request?: CsiRequest<Rpc>,
  options?: CsiCallOptions,
) => Promise<CsiResponse<Rpc>>

/**
 * Makes one call that answers with a stream. It begins when the first message is asked for; leaving the loop ends it. The plugin is not
 * faster than the reader.
 *
 * @throws what {@link CsiCall} throws, of its iterator. `timeoutMs` is the longest wait for one message; the time the reader takes for
 * it does not count.
 */
export type CsiStreamCall = <Rpc extends CsiStreamRpc>(
  rpc: Rpc,
  request?: WireRequest<Rpc>,
  options?: CsiCallOptions,
) => AsyncIterable<WireResponse<Rpc>>

/** How a call is made on the wire. */
export interface RpcDefinition extends CallDefinition {
  responseStream: boolean
}

let definitions: Map<string, RpcDefinition> | undefined

/** How a call is made, by its name; undefined where there is none of this form. */
export function rpcDefinition(rpc: string, form: 'unary' | 'stream'): RpcDefinition | undefined {
  definitions ??= allDefinitions()
  const definition = definitions.get(rpc)
  return definition?.responseStream === (form === 'stream') ? definition : undefined
}

function allDefinitions(): Map<string, RpcDefinition> {
  const { Identity, Controller, GroupController, SnapshotMetadata, Node } = csiProto()
  const services = [Identity, Controller, GroupController, SnapshotMetadata, Node]
  return new Map(services.flatMap(({ service }) => Object.entries(service)))
}
