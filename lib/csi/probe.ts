import { PlugstreamError } from '../errors.js'
import { speaksNoHttp2 } from '../grpc/call.js'
import type { ProbeAnswer } from '../plugin/kind.js'
import type { CsiCall } from './rpcs.js'
import { grpcCodeOf } from './status.js'

/**
 * Asks a plugin whether it is ready. An answer of any sort is a value.
 *
 * @throws ERR_ABORTED or ERR_TIMEOUT where the signal was what ended it.
 */
export async function probe(call: CsiCall, signal: AbortSignal): Promise<ProbeAnswer> {
  try {
    const { ready } = await call('Probe', {}, { signal })
    // Not set means ready: most drivers never set it.
    if (ready?.value !== false) return { kind: 'ready' }
    return { kind: 'not-ready', description: 'it answers that it is not ready yet' }
  } catch (error) {
    return grpcCodeOf(error) === 'UNIMPLEMENTED' ? askForName(call, signal) : meaningOf(error)
  }
}

/** A plugin without Probe that tells who it is, is one; a server without either serves something else. */
async function askForName(call: CsiCall, signal: AbortSignal): Promise<ProbeAnswer> {
  try {
    await call('GetPluginInfo', {}, { signal })
    return { kind: 'ready' }
  } catch (error) {
    if (grpcCodeOf(error) !== 'UNIMPLEMENTED') return meaningOf(error)
    return { kind: 'not-csi', description: 'it serves gRPC, but not CSI version 1' }
  }
}

function meaningOf(error: unknown): ProbeAnswer {
  if (!(error instanceof PlugstreamError)) throw error
  const { code, message: description, details } = error
  if (code === 'ERR_CLOSED') return { kind: 'unreachable', description }
  if (code !== 'ERR_CSI_RPC') throw error
  if (!details['connectionLost']) return { kind: 'failed', description }
  return { kind: speaksNoHttp2(description) ? 'not-csi' : 'unreachable', description }
}
