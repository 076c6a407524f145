import { PlugstreamError } from '../errors.js'
import type { Capabilities } from '../plugin/fingerprint.js'
import { capabilitiesOf } from './capabilities.js'
import type { CapabilityList } from './needs.js'
import type { CsiCall } from './rpcs.js'
import { grpcCodeOf } from './status.js'

/** What a plugin advertises, remembered until somebody says that it may be another one now. */
export class CapabilityMemory {
  readonly #call: CsiCall
  readonly #closing = new AbortController()
  readonly #known = new Map<CapabilityList, Capabilities | Promise<Capabilities>>()

  constructor(call: CsiCall) {
    this.#call = call
  }

  /** Asked for once, however many want to know. */
  get(list: CapabilityList): Capabilities | Promise<Capabilities> {
    const known = this.#known.get(list)
    if (known) return known
    const asked = this.#ask(list)
    this.#known.set(list, asked)
    // Unless it was forgotten meanwhile: then the answer may be of who is no more.
    const settle = (learn: () => void) => this.#known.get(list) === asked && learn()
    asked.then(
      (capabilities) => settle(() => this.learn(list, capabilities)),
      () => settle(() => this.#known.delete(list)),
    )
    return asked
  }

  async #ask(list: CapabilityList): Promise<Capabilities> {
    try {
      return await readers[list](this.#call, this.#closing.signal)
    } catch (error) {
      if (this.#closing.signal.aborted) throw new PlugstreamError('ERR_CLOSED', 'the channel is closed')
      // A socket without this service advertises nothing of it, whatever the driver claims elsewhere.
      if (grpcCodeOf(error) === 'UNIMPLEMENTED') return capabilitiesOf([])
      throw error
    }
  }

  learn(list: CapabilityList, capabilities: Capabilities): void {
    this.#known.set(list, capabilities)
  }

  /** Nobody waits for what is being asked any more. */
  close(): void {
    this.#closing.abort()
  }

  forget(): void {
    this.#known.clear()
  }
}

type RpcRead = 'ControllerGetCapabilities' | 'GroupControllerGetCapabilities' | 'NodeGetCapabilities'

const readRpcs =
  (rpc: RpcRead) =>
  async (call: CsiCall, signal: AbortSignal): Promise<Capabilities> => {
    const { capabilities } = await call(rpc, {}, { signal })
    return capabilitiesOf(capabilities.map((one) => one.rpc?.type))
  }

type Reader = (call: CsiCall, signal: AbortSignal) => Promise<Capabilities>

const readers: Readonly<Record<CapabilityList, Reader>> = {
  plugin: async (call, signal) => {
    const { capabilities } = await call('GetPluginCapabilities', {}, { signal })
    return capabilitiesOf(capabilities.map(({ service }) => service?.type))
  },
  controller: readRpcs('ControllerGetCapabilities'),
  groupController: readRpcs('GroupControllerGetCapabilities'),
  node: readRpcs('NodeGetCapabilities'),
}
