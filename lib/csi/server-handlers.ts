import { once } from 'node:events'
import type {
  Metadata,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  UntypedServiceImplementation,
  handleServerStreamingCall,
  handleUnaryCall,
  sendUnaryData,
} from '@grpc/grpc-js'
import type { ControllerHandlers } from './generated/csi/v1/Controller.js'
import type { GroupControllerHandlers } from './generated/csi/v1/GroupController.js'
import type { IdentityHandlers } from './generated/csi/v1/Identity.js'
import type { NodeHandlers } from './generated/csi/v1/Node.js'
import type { SnapshotMetadataHandlers } from './generated/csi/v1/SnapshotMetadata.js'
import { statusOf } from './server-status.js'

/** What a handler knows of a call besides its request. */
export interface CallContext {
  /** Aborted when nobody waits for the answer any more: the caller gave up, its deadline passed, or the connection is gone. */
  readonly signal: AbortSignal
  readonly metadata: Metadata
}

type Handler<Rpc> =
  Rpc extends handleUnaryCall<infer Request, infer Response>
    ? (request: Request, context: CallContext) => Response | Promise<Response>
    : Rpc extends handleServerStreamingCall<infer Request, infer Response>
      ? (request: Request, context: CallContext) => AsyncIterable<Response>
      : never

/** The handlers of a service, without the index signature that the generated types carry. */
type Handlers<Service> = {
  [Rpc in keyof Service as string extends Rpc ? never : number extends Rpc ? never : Rpc]: Handler<Service[Rpc]>
}

/**
 * The CSI services of one server. A handler takes a request and gives back the response; what it throws becomes the call's status
 * (see {@link status}). A service, or a single call, that is left out answers UNIMPLEMENTED.
 */
export interface CsiServices {
  identity: Handlers<IdentityHandlers>
  controller?: Partial<Handlers<ControllerHandlers>> | undefined
  node?: Partial<Handlers<NodeHandlers>> | undefined
  groupController?: Partial<Handlers<GroupControllerHandlers>> | undefined
  snapshotMetadata?: Partial<Handlers<SnapshotMetadataHandlers>> | undefined
}

type UnaryCall = ServerUnaryCall<object, object>
type StreamingCall = ServerWritableStream<object, object>
type AnyHandler = (request: unknown, context: CallContext) => unknown

/** Puts plain handlers into the form grpc wants. `handlers` may be an object of a class: they are called on it. */
export function implementationOf(service: ServiceDefinition, handlers: object): UntypedServiceImplementation {
  const given = handlers as Record<string, AnyHandler | undefined>
  const implementation: UntypedServiceImplementation = {}
  for (const [rpc, { responseStream }] of Object.entries(service)) {
    if (typeof given[rpc] !== 'function') continue
    const handle: AnyHandler = (request, context) => given[rpc]?.(request, context)
    const unary: handleUnaryCall<object, object> = (call, answer) => void answerOnce(handle, call, answer)
    const streaming: handleServerStreamingCall<object, object> = (call) => void answerMany(handle, call)
    implementation[rpc] = responseStream ? streaming : unary
  }
  return implementation
}

async function answerOnce(handle: AnyHandler, call: UnaryCall, answer: sendUnaryData<object>): Promise<void> {
  try {
    answer(null, (await handle(call.request, contextOf(call))) as object)
  } catch (thrown) {
    answer(statusOf(thrown, call.request))
  }
}

async function answerMany(handle: AnyHandler, call: StreamingCall): Promise<void> {
  const context = contextOf(call)
  try {
    for await (const message of handle(call.request, context) as AsyncIterable<object>) {
      context.signal.throwIfAborted()
      if (!call.write(message)) await once(call, 'drain', { signal: context.signal })
    }
    call.end()
  } catch (thrown) {
    call.emit('error', statusOf(thrown, call.request))
  }
}

function contextOf(call: UnaryCall | StreamingCall): CallContext {
  const gone = new AbortController()
  call.once('cancelled', () => gone.abort())
  return { signal: gone.signal, metadata: call.metadata }
}
