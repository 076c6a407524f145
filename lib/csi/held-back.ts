import { elapsedMs } from '../clock.js'
import { PlugstreamError } from '../errors.js'
import type { PluginHeld } from '../plugin/kind.js'
import { within } from './within.js'

/**
 * Waits for as long as the calls of a plugin are held back.
 *
 * @throws ERR_PLUGIN_NOT_READY where they still are after `timeoutMs`, ERR_ABORTED or ERR_TIMEOUT where the signal is aborted. Nothing
 * was sent.
 */
export async function untilLetGo(
  rpc: string,
  held: PluginHeld | undefined,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const endAt = elapsedMs() + timeoutMs
  for (let over = held?.(); over; over = held?.()) {
    const waitMs = endAt - elapsedMs()
    if (waitMs <= 0) throw heldBack(rpc)
    const wait = over
    await within(rpc, waitMs, signal, () => wait)
  }
}

function heldBack(rpc: string): PlugstreamError {
  return new PlugstreamError('ERR_PLUGIN_NOT_READY', `${rpc}: its plugin is being replaced, and not back in time`, {
    retryable: true,
    details: { rpc, outcome: 'final', sent: false },
  })
}
