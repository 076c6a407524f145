import { status, type ServiceError } from '@grpc/grpc-js'
import { abortedError } from '../errors.js'
import type { ProbeAnswer } from '../plugin/kind.js'
import { endOf, speaksNoHttp2 } from './call.js'

/**
 * What a status of `grpc.health.v1` means. One that does not serve is alive and says so itself: it is warming up, or waits for what it needs,
 * and no restart makes that faster; that is `not-ready`. A name that it does not know is mostly misspelt, and has to be found out.
 */
export function meaningOfStatus(servingStatus: string | number | undefined, service: string): ProbeAnswer {
  switch (servingStatus) {
    case 'SERVING':
      return { kind: 'ready' }
    case 'NOT_SERVING':
      return { kind: 'not-ready', description: `${named(service)} is NOT_SERVING` }
    case 'UNKNOWN':
      return { kind: 'not-ready', description: `${named(service)} does not know yet whether it serves: UNKNOWN` }
    case 'SERVICE_UNKNOWN':
      return unknownService(service)
    default:
      return { kind: 'failed', description: `${named(service)} answers with the status ${String(servingStatus)}` }
  }
}

/**
 * What it means that Check failed.
 *
 * @throws ERR_ABORTED or ERR_TIMEOUT where the signal was what ended it.
 */
export async function meaningOfFailure(
  error: ServiceError,
  { service, signal, wasLost }: { service: string; signal: AbortSignal; wasLost: () => boolean },
): Promise<ProbeAnswer> {
  const description = `Check failed: ${status[error.code]}: ${error.details}`
  switch (await endOf(error, signal, wasLost)) {
    case 'aborted':
      throw abortedError('Check', signal)
    case 'closed':
      return { kind: 'unreachable', description }
    case 'none':
    case 'lost':
      return { kind: speaksNoHttp2(error.details) ? 'not-served' : 'unreachable', description }
    case 'answered':
      if (error.code === status.NOT_FOUND) return unknownService(service)
      if (error.code !== status.UNIMPLEMENTED) return { kind: 'failed', description }
      return { kind: 'not-served', description: 'it serves gRPC, but not grpc.health.v1' }
  }
}

function unknownService(service: string): ProbeAnswer {
  return { kind: 'failed', description: `it does not know of ${named(service)}` }
}

function named(service: string): string {
  return service === '' ? 'the server' : `the service ${service}`
}
