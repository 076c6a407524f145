import { status, type ServiceError } from '@grpc/grpc-js'
import { abortedError, PlugstreamError } from '../errors.js'
import { unaryCall, type CallDefinition } from '../grpc/call.js'
import { Link } from '../grpc/link.js'
import type { RegistrarInfo, RegistrarVerdict } from '../plugin/announcement.js'
import { registrationProto } from './proto.js'
import { rpcError } from './status.js'

export interface RegistrarCallOptions {
  signal: AbortSignal
  timeoutMs: number
}

/**
 * Asks a registrar what it announces, over a connection of its own. Settles when that is closed again.
 *
 * @throws ERR_SOCKET where nobody answers, or somebody who is no registrar; `retryable` unless the same server cannot ever answer. ERR_ABORTED,
 * ERR_SOCKET_PATH.
 */
export async function askRegistrar(socketPath: string, options: RegistrarCallOptions): Promise<RegistrarInfo> {
  const { type, name, endpoint, supported_versions } = await call(socketPath, 'GetInfo', {}, options)
  return { type, name, endpoint, supportedVersions: supported_versions }
}

/** Tells a registrar what became of its plugin. It may end upon it, and so before it has answered. @throws as `askRegistrar`. */
export async function tellRegistrar(
  socketPath: string,
  verdict: RegistrarVerdict,
  options: RegistrarCallOptions,
): Promise<void> {
  const error = verdict.registered ? '' : verdict.error
  await call(socketPath, 'NotifyRegistrationStatus', { plugin_registered: verdict.registered, error }, options)
}

type Service = ReturnType<typeof registrationProto>['Registration']['service']
type Rpc = 'GetInfo' | 'NotifyRegistrationStatus'
type Request<R extends Rpc> = Parameters<Service[R]['requestSerialize']>[0]
type Response<R extends Rpc> = ReturnType<Service[R]['responseDeserialize']>

async function call<R extends Rpc>(
  socketPath: string,
  rpc: R,
  request: Request<R>,
  { signal, timeoutMs }: RegistrarCallOptions,
): Promise<Response<R>> {
  const link = new Link(socketPath)
  try {
    return await answerOf(link, rpc, request, signal, timeoutMs)
  } catch (failure) {
    if (signal.aborted) throw abortedError(rpc, signal)
    throw silence(socketPath, rpc, failure as ServiceError, timeoutMs)
  } finally {
    await link.close(() => Promise.resolve())
  }
}

async function answerOf<R extends Rpc>(
  { client }: Link,
  rpc: R,
  request: Request<R>,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<Response<R>> {
  const definition = registrationProto().Registration.service[rpc] as CallDefinition
  const deadline = Date.now() + timeoutMs
  const { answer } = unaryCall(client, definition, definition.requestSerialize(request), { signal, deadline })
  return (await answer) as Response<R>
}

function silence(socketPath: string, rpc: Rpc, error: ServiceError, timeoutMs: number): PlugstreamError {
  const { grpcCode, grpcDetails = grpcCode } = rpcError(rpc, error, {}).details
  const isOther = error.code === status.UNIMPLEMENTED
  // Nobody listens again on a socket that its process has left: there will be another in its place.
  const isDead = /ECONNREFUSED|ENOENT/.test(error.details)
  const why = isOther ? 'is served by something else than a registrar' : `does not answer ${rpc}`
  // The client's words for it are never twice the same.
  const words = error.code === status.DEADLINE_EXCEEDED ? `not within ${timeoutMs} ms` : String(grpcDetails)
  return new PlugstreamError('ERR_SOCKET', `the registration socket ${socketPath} ${why}: ${words}`, {
    retryable: !isOther && !isDead,
    details: { socketPath, grpcCode },
  })
}
