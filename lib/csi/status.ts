import { status, type ServiceError } from '@grpc/grpc-js'
import { PlugstreamError } from '../errors.js'
import { cut } from '../without-values.js'
import { withoutSecrets } from './secrets.js'

/** What became of a call that failed: the plugin is done with it, or it may still be at work, or have done it. */
export type CallOutcome = 'final' | 'unknown'

const retryable = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.RESOURCE_EXHAUSTED, status.ABORTED])

const unknownOutcome = new Set([...retryable, status.CANCELLED])

/** The names of the codes; a server may send one that has none. */
const codes: Readonly<Partial<Record<number, string>>> = status

/** Drivers send stack traces and the output of whole programs; the beginning says what happened. */
const longestText = 500

/**
 * A call's error as ERR_CSI_RPC. What the client gave is no `cause` of it: that carries the driver's text uncut, and with it whatever
 * secret of the request the driver repeats.
 */
export function rpcError(
  rpc: string,
  error: Pick<ServiceError, 'code' | 'details'>,
  request: object,
  connection?: 'lost' | 'none',
): PlugstreamError {
  const connectionLost = connection !== undefined
  const grpcCode = codes[error.code] ?? String(error.code)
  const text = shortened(withoutSecrets(error.details, request))
  const outcome: CallOutcome = connectionLost || unknownOutcome.has(error.code) ? 'unknown' : 'final'
  return new PlugstreamError('ERR_CSI_RPC', `${rpc} failed: ${grpcCode}${text && `: ${text}`}`, {
    retryable: connectionLost || retryable.has(error.code),
    details: {
      rpc,
      grpcCode,
      ...(text && { grpcDetails: text }),
      outcome,
      ...(connectionLost && { connectionLost }),
      ...(connection === 'none' && { sent: false }),
    },
  })
}

/**
 * Whether a call that failed is over (`final`), or may still be under way or have been done after all (`unknown`): then the same call,
 * made again, or the one that undoes it, settles what is. A call that was refused before it was sent is over.
 */
export function outcomeOf(error: unknown): CallOutcome {
  return error instanceof PlugstreamError && error.details['outcome'] === 'unknown' ? 'unknown' : 'final'
}

/** The gRPC code of an error, as in `UNIMPLEMENTED`; undefined for one that no call made. */
export function grpcCodeOf(error: unknown): string | undefined {
  const isRpc = error instanceof PlugstreamError && error.code === 'ERR_CSI_RPC'
  return isRpc ? (error.details['grpcCode'] as string) : undefined
}

/** What the client puts around the one error that says why there is no connection. */
const wrapping = /^No connection established\. Last error: (Error: )?|( \([\dTZ:.-]+\))?\. Resolution note:.*$/g

/** One line, without a stack, and not too long. */
function shortened(details: string): string {
  const [text = ''] = details.split(/\n\s+at /, 1)
  const line = text.replaceAll(/\s+/g, ' ').replaceAll(wrapping, '').trim()
  return line.length > longestText ? line.slice(0, longestText) + cut : line
}
