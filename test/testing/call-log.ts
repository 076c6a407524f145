import { EventEmitter, once } from 'node:events'
import type { CsiRpc } from '../../lib/csi/rpcs.js'
import { abortedError, PlugstreamError } from '../../lib/errors.js'
import { checkRpc } from './check-script.js'

/** One call that reached a scripted plugin, also where it was never answered. */
export interface PluginCall {
  rpc: CsiRpc
  request: Record<string, unknown>
  /** Unix ms. */
  at: number
}

/** The calls in the order they came, and a way to wait for one. */
export class CallLog {
  readonly calls: PluginCall[] = []
  readonly #changes = new EventEmitter().setMaxListeners(0)
  #ended: PlugstreamError | undefined

  add(call: PluginCall): void {
    this.calls.push(call)
    this.#changes.emit('change')
  }

  /** No more calls come. */
  end(why: string): void {
    this.#ended ??= new PlugstreamError('ERR_CLOSED', `no more calls come: ${why}`)
    this.#changes.emit('change')
  }

  /**
   * The `count`th call of `rpc`, counted from the beginning; at once where it has come already.
   *
   * @throws ERR_OPTION_INVALID where there is no such call. ERR_CLOSED where the plugin ends before it; ERR_ABORTED or ERR_TIMEOUT where the signal is aborted.
   */
  async wait(rpc: CsiRpc, count: number, signal?: AbortSignal): Promise<PluginCall> {
    checkRpc(rpc)
    for (;;) {
      const found = this.calls.filter((call) => call.rpc === rpc)[count - 1]
      if (found) return found
      if (this.#ended) throw this.#ended
      await once(this.#changes, 'change', signal && { signal }).catch((failure: unknown) => {
        throw signal ? abortedError(`waiting for ${rpc}`, signal) : failure
      })
    }
  }
}
