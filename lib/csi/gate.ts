import type { Capabilities } from '../plugin/fingerprint.js'
import { PlugstreamError } from '../errors.js'
import type { CapabilityList, Needs } from './needs.js'
import type { CsiCallOptions } from './rpcs.js'
import { within } from './within.js'

/** Tells what a plugin advertises: at once where it is known, or else by asking. */
export type TellCapabilities = (list: CapabilityList) => Capabilities | Promise<Capabilities>

/**
 * Lets a call pass that the plugin advertises. What a plugin claims to have elsewhere (CONTROLLER_SERVICE on the socket of a node) is not
 * asked: only the lists of the service that is called.
 *
 * @throws ERR_CSI_UNSUPPORTED, and what asking throws, of which the outcome is final: the call itself was not sent.
 */
export async function checkAdvertised(
  rpc: string,
  needs: Needs,
  tell: TellCapabilities,
  { signal, timeoutMs }: CsiCallOptions & { timeoutMs: number },
): Promise<void> {
  for (const need of needs) {
    if (!need) continue
    const { list, anyOf } = need
    const told = tell(list)
    const { names } = told instanceof Promise ? await inTime(rpc, told, timeoutMs, signal) : told
    if (anyOf.some((name) => names.includes(name))) continue
    throw new PlugstreamError('ERR_CSI_UNSUPPORTED', `${rpc}: the plugin does not advertise ${anyOf.join(' or ')}`, {
      details: { rpc, capability: anyOf[0] },
    })
  }
}

async function inTime(
  rpc: string,
  told: Promise<Capabilities>,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Capabilities> {
  const answer = await within(rpc, timeoutMs, signal, () => told).catch((thrown: unknown) => {
    const { code, message, cause, retryable, details } = PlugstreamError.from(thrown, 'ERR_ABORTED', rpc)
    throw new PlugstreamError(code, message, {
      cause,
      retryable,
      details: { ...details, outcome: 'final', sent: false },
    })
  })
  if (answer) return answer
  throw new PlugstreamError(
    'ERR_CSI_RPC',
    `${rpc} failed: DEADLINE_EXCEEDED: the plugin did not tell its capabilities`,
    {
      retryable: true,
      details: { rpc, grpcCode: 'DEADLINE_EXCEEDED', outcome: 'final', sent: false },
    },
  )
}
