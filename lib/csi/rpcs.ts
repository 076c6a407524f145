import type { MethodDefinition } from '@grpc/proto-loader'
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

/** Every call of the five CSI services that has one answer. */
export type CsiRpc = Exclude<keyof AllCalls, 'GetMetadataAllocated' | 'GetMetadataDelta'>

/** What a call takes; every field may be left out. */
export type CsiRequest<Rpc extends CsiRpc> =
  AllCalls[Rpc] extends MethodDefinition<infer Request extends object, infer _R, infer _Q, infer _A> ? Request : never

/** What it answers; int64 as decimal text, enum values by name (by number where the name is not known), what is absent as null. */
export type CsiResponse<Rpc extends CsiRpc> =
  AllCalls[Rpc] extends MethodDefinition<infer _Q, infer _R, infer _A, infer Response extends object> ? Response : never

export interface CsiCallOptions {
  signal?: AbortSignal
  /** The call's deadline. Default: `Timing.rpcTimeoutMs`. */
  timeoutMs?: number
}

/**
 * Makes one call. Never throws in the call itself.
 *
 * @throws ERR_CSI_RPC where the plugin or the connection answers with an error, the deadline included; `details` hold `rpc`,
 * `grpcCode` (as in `NOT_FOUND`) and, where the connection was what failed, `connectionLost`: whether the plugin did its part is not
 * known then. `retryable` then, and for UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and ABORTED.
 * @throws ERR_ABORTED, or ERR_TIMEOUT for a signal of `AbortSignal.timeout`, ERR_CLOSED after `close()`, ERR_OPTION_INVALID.
 */
export type CsiCall = <Rpc extends CsiRpc>(
  rpc: Rpc,
  request?: CsiRequest<Rpc>,
  options?: CsiCallOptions,
) => Promise<CsiResponse<Rpc>>

/** How a call is made on the wire. */
export interface RpcDefinition {
  path: string
  requestSerialize: (request: object) => Buffer
  responseDeserialize: (bytes: Buffer) => object
}

let definitions: Map<string, RpcDefinition> | undefined

/** Every call by its name. */
export function rpcDefinitions(): ReadonlyMap<string, RpcDefinition> {
  if (definitions) return definitions
  const { Identity, Controller, GroupController, SnapshotMetadata, Node } = csiProto()
  const services = [Identity, Controller, GroupController, SnapshotMetadata, Node]
  const all = services.flatMap(({ service }) => Object.entries(service))
  definitions = new Map(all.filter(([, { responseStream }]) => !responseStream))
  return definitions
}
