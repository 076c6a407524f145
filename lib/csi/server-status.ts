import { status as grpcStatus } from '@grpc/grpc-js'
import { messageOf } from '../errors.js'

/** The name of a gRPC status, as in `NOT_FOUND`. */
export type CsiStatusName = Exclude<keyof typeof grpcStatus, 'OK'>

/** What a handler throws to answer a call with a status of its choice; made by {@link status}. */
export class CsiStatusError extends Error {
  override readonly name = 'CsiStatusError'
  readonly code: CsiStatusName

  constructor(code: CsiStatusName, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * The error a handler throws to answer with a status.
 *
 * @example
 * if (!volume) throw status('NOT_FOUND', `there is no volume ${request.volume_id}`)
 */
export function status(code: CsiStatusName, message: string): CsiStatusError {
  return new CsiStatusError(code, message)
}

/** Longest message that is sent: it travels in a header, and headers have limits of their own. */
const messageLimit = 2_000

/**
 * What a caller is told of something a handler threw: its status or else INTERNAL, and its message alone, in which no secret of the
 * request is left readable.
 */
export function statusOf(thrown: unknown, request: unknown): { code: grpcStatus; details: string } {
  const code = thrown instanceof CsiStatusError ? grpcStatus[thrown.code] : grpcStatus.INTERNAL
  const secrets = Object.values((request as { secrets?: Record<string, string> }).secrets ?? {}).filter(Boolean)
  secrets.sort((a, b) => b.length - a.length) // so that none is left in parts
  const message = secrets.reduce((text, secret) => text.replaceAll(secret, '***'), messageOf(thrown))
  // A half of a surrogate pair cannot be sent.
  return { code, details: message.slice(0, messageLimit).replace(/\p{Surrogate}/gu, '\ufffd') }
}
