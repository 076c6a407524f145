import { setImmediate as nextTurn } from 'node:timers/promises'
import { Metadata, status, type Client, type ServiceError } from '@grpc/grpc-js'

/** How a call is made on the wire. */
export interface CallDefinition {
  path: string
  requestSerialize: (request: object) => Buffer
  responseDeserialize: (bytes: Buffer) => object
}

/** A call with one answer, under way. */
export interface PendingCall {
  /** Rejects with the ServiceError of the client. */
  readonly answer: Promise<object>
  readonly cancel: () => void
}

/** Makes a call with one answer. `message` is the request as it goes on the wire, `deadline` in Unix ms. */
export function unaryCall(
  client: Client,
  { path, responseDeserialize }: CallDefinition,
  message: Buffer,
  { signal, deadline }: { signal?: AbortSignal | undefined; deadline: number },
): PendingCall {
  let cancel = (): void => undefined
  const answer = new Promise<object>((resolve, reject) => {
    const answered = (error: ServiceError | null, response?: object): void => {
      signal?.removeEventListener('abort', cancel)
      if (error) reject(error)
      else resolve(response as object)
    }
    const call = client.makeUnaryRequest(
      path,
      asIs,
      responseDeserialize,
      message,
      new Metadata(),
      { deadline },
      answered,
    )
    cancel = (): void => call.cancel()
    signal?.addEventListener('abort', cancel)
    if (signal?.aborted) cancel()
  })
  return { answer, cancel: () => cancel() }
}

/** For a request that is serialized already. */
export const asIs = (bytes: Buffer): Buffer => bytes

/**
 * What ended a call that failed: the server's answer, its caller, the closing of the client, or the connection, of which there was `none`
 * or which was `lost` on the way. The code alone does not tell, since a server may answer with any.
 *
 * @param wasLost what `Link.noteLosses` gave before the call.
 */
export async function endOf(
  error: ServiceError,
  signal: AbortSignal | undefined,
  wasLost: () => boolean,
): Promise<'answered' | 'aborted' | 'closed' | 'none' | 'lost'> {
  if (error.code === status.CANCELLED && signal?.aborted) return 'aborted'
  if (!mayBeOfConnection(error)) return 'answered'
  if (error.details.startsWith('Channel closed before')) return 'closed'
  // The client's words, since by now there may be a connection.
  const hadNone = error.details.startsWith('No connection established')
  // If it was the connection, its end is known in the next turn at the latest.
  await nextTurn()
  if (hadNone) return 'none'
  return wasLost() ? 'lost' : 'answered'
}

/** Whether the client may have made the error itself because a connection ended. A server may answer with any of these, too. */
function mayBeOfConnection({ code, details }: ServiceError): boolean {
  const isReset = code === status.INTERNAL && details.startsWith('Received RST_STREAM')
  return code === status.UNAVAILABLE || code === status.CANCELLED || isReset
}

/** Whether a connection failed since what came back was not HTTP/2, by the client's words for it. */
export function speaksNoHttp2(details: string): boolean {
  return /protocol error|frame size/i.test(details)
}
