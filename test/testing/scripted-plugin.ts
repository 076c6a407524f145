import { chmod, rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { csiProto } from '../../lib/csi/proto.js'
import type { CsiRpc } from '../../lib/csi/rpcs.js'
import type { CallContext, CsiServices } from '../../lib/csi/server-handlers.js'
import { status } from '../../lib/csi/server-status.js'
import { serveCsi, type CsiServer } from '../../lib/csi/server.js'
import { invalidOption } from '../../lib/errors.js'
import { fieldsOf, takeOptions } from '../../lib/options.js'
import { checkReplies, checkRpc, checkScript } from './check-script.js'
import { CallLog, type PluginCall } from './call-log.js'
import { serveNothing } from './mute-server.js'
import { answers, type PluginScript, type Reply } from './plugin-script.js'

/** A CSI plugin that does as it is told: a real gRPC server on a real socket. */
export interface ScriptedPlugin extends AsyncDisposable {
  readonly socketPath: string
  /** Every call that came, oldest first. */
  readonly calls: readonly PluginCall[]
  /**
   * The `count`th call of `rpc` (default: the first), counted from the beginning; at once where it has come already.
   *
   * @throws ERR_OPTION_INVALID where there is no such call. ERR_CLOSED where the plugin ends before it; ERR_ABORTED or ERR_TIMEOUT where the signal is aborted.
   */
  waitForCall(rpc: CsiRpc, count?: number, signal?: AbortSignal): Promise<PluginCall>
  /** Changes the given fields of the script from now on; replies are the new ones alone. */
  change(script: PluginScript): Promise<void>
  /** Adds to the replies of one call. */
  reply(rpc: CsiRpc, ...replies: Reply[]): Promise<void>
  /** Begins to listen. Where it listened before, that server stays as it is and keeps its connections. */
  listen(): Promise<void>
  /** Removes the socket and puts another server's in its place, which does as the changed script says; the old one stays. */
  rebind(script?: PluginScript): Promise<void>
  /** Cuts all connections off. */
  disconnect(): Promise<void>
  /** Removes the socket; who is connected stays connected. */
  unlinkSocket(): Promise<void>
  /** Changes the mode of the socket, as drivers do after they bind. */
  chmodSocket(mode: number): Promise<void>
  /** Ends it, with everything it holds, at once. Idempotent. */
  close(): Promise<void>
}

export interface ScriptedPluginInit {
  socketPath: string
  script?: PluginScript | undefined
  /** Hears each call before it is answered; the answer waits for it. */
  onCall?: ((call: PluginCall) => Promise<void>) | undefined
  /** Hears when nobody waits for the answer of a call any more: it was given, or its caller has left. */
  onEnd?: ((call: PluginCall) => void) | undefined
  /** What a reply with the fault `exit` does; only a program of its own can. */
  exit?: ((code: number) => void) | undefined
}

const initFields = fieldsOf<ScriptedPluginInit>({
  socketPath: true,
  script: true,
  onCall: true,
  onEnd: true,
  exit: true,
})

/**
 * Starts a scripted plugin in this process. Resolves once it listens, or at once where the script says that it listens later.
 *
 * @throws ERR_OPTION_INVALID naming the field, also of a script. ERR_SOCKET and the other errors of `serveCsi`.
 * @example
 * await using plugin = await scriptedPlugin({ socketPath, script: { ready: false } })
 * await plugin.waitForCall('Probe')
 * await plugin.change({ ready: true })
 * await plugin.reply('NodeStageVolume', { status: 'UNAVAILABLE' }, { fault: 'hang' })
 */
export async function scriptedPlugin(init: ScriptedPluginInit): Promise<ScriptedPlugin> {
  const plugin = new Plugin(takeOptions('init', init, initFields))
  await plugin.start()
  return plugin
}

type HeldScript = Omit<PluginScript, 'replies'> & { replies: NonNullable<PluginScript['replies']> }

const held = ({ replies = {}, ...script }: PluginScript): HeldScript => ({ ...script, replies })

class Plugin implements ScriptedPlugin {
  readonly socketPath: string
  readonly #init: ScriptedPluginInit
  readonly #log = new CallLog()
  readonly #servers: Pick<CsiServer, 'disconnect' | 'close'>[] = []
  readonly #closing = new AbortController()
  /** The volumes that are worked on, where they are locked. */
  readonly #locked = new Set<unknown>()
  /** The script of the newest server; older ones keep theirs. */
  #script: HeldScript

  constructor(init: ScriptedPluginInit) {
    this.#init = init
    this.socketPath = init.socketPath
    this.#script = held({ ...checkScript(init.script) })
  }

  get calls(): readonly PluginCall[] {
    return this.#log.calls
  }

  async start(): Promise<void> {
    const { listen = 'at-once' } = this.#script
    if (listen === 'at-once') return this.listen()
    if (listen === 'on-demand') return
    const late = pause(listen.afterMs, undefined, { signal: this.#closing.signal })
    void late.then(
      () => this.listen(),
      () => undefined, // closed before
    )
  }

  waitForCall(rpc: CsiRpc, count = 1, signal?: AbortSignal): Promise<PluginCall> {
    return this.#log.wait(rpc, count, signal)
  }

  async change(script: PluginScript): Promise<void> {
    Object.assign(this.#script, held({ ...this.#script, ...checkScript(script) }))
  }

  async reply(rpc: CsiRpc, ...replies: Reply[]): Promise<void> {
    checkRpc(rpc)
    checkReplies(replies)
    this.#script.replies = { ...this.#script.replies, [rpc]: [...(this.#script.replies[rpc] ?? []), ...replies] }
  }

  async listen(): Promise<void> {
    const script = (this.#script = { ...this.#script })
    const server = script.mute ? await serveNothing(this.socketPath) : await serveCsi(this.#served(script))
    this.#servers.push(server)
    if (this.#closing.signal.aborted) await server.close()
  }

  async rebind(script: PluginScript = {}): Promise<void> {
    checkScript(script)
    await this.unlinkSocket()
    this.#script = held({ ...this.#script, ...script })
    await this.listen()
  }

  async disconnect(): Promise<void> {
    for (const server of this.#servers) server.disconnect()
  }

  async unlinkSocket(): Promise<void> {
    await rm(this.socketPath, { force: true })
  }

  async chmodSocket(mode: number): Promise<void> {
    await chmod(this.socketPath, mode)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#log.end('the plugin was closed')
    await Promise.all(this.#servers.map((server) => server.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #served(script: HeldScript) {
    const { Identity, Controller, Node, GroupController } = csiProto()
    const { services = ['controller', 'node'], idleConnectionMs } = script
    const play = ({ service }: { service: object }): object =>
      Object.fromEntries(
        (Object.keys(service) as CsiRpc[]).map((rpc) => [
          rpc,
          (request: PluginCall['request'], context: CallContext) =>
            this.#play(script, { rpc, request, at: Date.now() }, context),
        ]),
      )
    return {
      socketPath: this.socketPath,
      closeTimeoutMs: 100,
      ...(idleConnectionMs !== undefined && { idleConnectionMs }),
      identity: play(Identity) as CsiServices['identity'],
      ...(services.includes('controller') && { controller: play(Controller) }),
      ...(services.includes('node') && { node: play(Node) }),
      ...(services.includes('groupController') && { groupController: play(GroupController) }),
    }
  }

  async #play(script: HeldScript, call: PluginCall, context: CallContext): Promise<object> {
    const [reply = {}, ...rest] = script.replies[call.rpc] ?? []
    if (!reply.repeat) script.replies = { ...script.replies, [call.rpc]: rest }
    this.#log.add(call)
    using _told = this.#followed(call, context)
    await this.#init.onCall?.(call)

    using _lock = script.locksVolumes ? this.#lock(call) : undefined
    const ended = (): AbortSignal =>
      script.locksVolumes ? this.#closing.signal : AbortSignal.any([context.signal, this.#closing.signal])
    if (reply.delayMs !== undefined) await pause(reply.delayMs, undefined, { signal: ended() })
    if (reply.fault === 'disconnect') await this.disconnect()
    else if (reply.fault === 'hang') await never(ended())
    else if (reply.fault) this.#exit(reply.fault.exit)
    if (reply.status) throw status(reply.status, reply.message ?? `scripted ${reply.status}`)
    return reply.response ?? answers[call.rpc]?.(script, call.request) ?? {}
  }

  /** Tells of the end of a call once, whichever comes first. */
  #followed(call: PluginCall, { signal }: CallContext): Disposable {
    const end = (): void => {
      signal.removeEventListener('abort', end)
      this.#init.onEnd?.(call)
    }
    signal.addEventListener('abort', end)
    return {
      [Symbol.dispose]: () => {
        if (!signal.aborted) end()
      },
    }
  }

  #lock({ request }: PluginCall): Disposable | undefined {
    const volumeId = request['volume_id']
    if (!volumeId) return undefined
    if (this.#locked.has(volumeId)) throw status('ABORTED', 'an operation on this volume exists already')
    this.#locked.add(volumeId)
    return { [Symbol.dispose]: () => void this.#locked.delete(volumeId) }
  }

  #exit(code: number): void {
    if (!this.#init.exit) throw invalidOption('fault', 'exit', 'left to a plugin that is a program of its own')
    this.#init.exit(code)
  }
}

/** Ends with the call, so that nothing of it is left. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => reject(status('CANCELLED', 'nobody waits for this any more'))
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
