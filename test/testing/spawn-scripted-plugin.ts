import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { removeDeadSocket } from '../../lib/csi/socket-file.js'
import type { TaskExit } from '../../lib/task/driver.js'
import { PlugstreamError } from '../../lib/errors.js'
import { takeOptions } from '../../lib/options.js'
import { checkScript } from './check-script.js'
import { CallLog, type PluginCall } from './call-log.js'
import type { PluginScript } from './plugin-script.js'
import type { ScriptedPlugin } from './scripted-plugin.js'

/** What the program can be told to do. */
type Method = 'change' | 'reply' | 'listen' | 'rebind' | 'disconnect' | 'unlinkSocket' | 'chmodSocket'
export interface ParentMessage {
  id: number
  method: Method
  parameters: unknown[]
}
export type ChildMessage =
  { kind: 'started' } | { kind: 'call'; call: PluginCall } | { kind: 'done'; id: number; failure?: string }

/** A scripted plugin that is a process of its own: it can be killed, stopped, and exit in the middle of a call. */
export interface SpawnedPlugin extends ScriptedPlugin {
  readonly pid: number
  /** Resolves when the process is gone. */
  readonly exit: Promise<TaskExit>
  kill(signal: NodeJS.Signals): void
  /** Kills it where it still runs, and removes the socket it leaves behind. */
  close(): Promise<void>
}

/** The program that is the scripted plugin; from the source tree it runs under the loader that the tests run under. */
const program = new URL(`./programs/scripted-plugin${import.meta.url.slice(-3)}`, import.meta.url)
const loader = program.href.endsWith('.ts') ? ['--import', import.meta.resolve('tsx/esm')] : []

/**
 * Starts a scripted plugin as a child process. Resolves once it listens, or has started where the script says that it listens later.
 *
 * @throws ERR_OPTION_INVALID naming the field; ERR_TASK_SPAWN with what the program said, where it ends before that.
 */
export async function spawnScriptedPlugin(init: {
  socketPath: string
  script?: PluginScript | undefined
}): Promise<SpawnedPlugin> {
  const { socketPath, script = {} } = takeOptions('init', init, ['socketPath', 'script'])
  checkScript(script)
  const child = fork(fileURLToPath(program), [], {
    execArgv: loader,
    env: { ...process.env, CSI_ENDPOINT: `unix://${socketPath}`, ...scriptVariable(script) },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const plugin = new Spawned(child, socketPath)
  await plugin.started()
  return plugin
}

/**
 * A scripted plugin as a command for whoever runs tasks; `CSI_ENDPOINT` comes from there. `script` may be the path of a JSON file,
 * which is read at every start: so a restart can bring another version.
 *
 * @example
 * const spec = { allocId: 'a1', taskName: 'plugin', isolation: 'none', csiPlugin, ...scriptedPluginCommand({ version: '2.0.0' }) }
 */
export function scriptedPluginCommand(script: PluginScript | string = {}): {
  command: [string, ...string[]]
  env: Record<string, string>
} {
  if (typeof script !== 'string') checkScript(script)
  return { command: [process.execPath, ...loader, fileURLToPath(program)], env: scriptVariable(script) }
}

function scriptVariable(script: PluginScript | string): Record<string, string> {
  return { PLUGSTREAM_SCRIPT: typeof script === 'string' ? `@${script}` : JSON.stringify(script) }
}

class Spawned implements SpawnedPlugin {
  readonly socketPath: string
  readonly exit: Promise<TaskExit>
  readonly #child: ChildProcess
  readonly #log = new CallLog()
  readonly #waiting = new Map<number, (failure?: string) => void>()
  #lastId = 0
  #said = ''

  constructor(child: ChildProcess, socketPath: string) {
    this.#child = child
    this.socketPath = socketPath
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#said += text))
    child.on('message', (message: ChildMessage) => {
      if (message.kind === 'call') this.#log.add(message.call)
      if (message.kind === 'done') this.#waiting.get(message.id)?.(message.failure)
    })
    this.exit = once(child, 'close').then(([code, signal]) => {
      this.#log.end('the plugin has exited')
      for (const done of this.#waiting.values()) done('it has exited')
      return { code: code as number | null, signal: signal as string | null }
    })
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  get calls(): readonly PluginCall[] {
    return this.#log.calls
  }

  async started(): Promise<void> {
    const exit = await Promise.race([once(this.#child, 'message').then(() => undefined), this.exit])
    if (!exit) return
    throw new PlugstreamError('ERR_TASK_SPAWN', `the scripted plugin did not start: ${this.#said.trim()}`)
  }

  waitForCall: ScriptedPlugin['waitForCall'] = (rpc, count = 1, signal) => this.#log.wait(rpc, count, signal)
  change: ScriptedPlugin['change'] = (script) => this.#tell('change', script)
  reply: ScriptedPlugin['reply'] = (rpc, ...replies) => this.#tell('reply', rpc, ...replies)
  listen: ScriptedPlugin['listen'] = () => this.#tell('listen')
  rebind: ScriptedPlugin['rebind'] = (script) => this.#tell('rebind', script)
  disconnect: ScriptedPlugin['disconnect'] = () => this.#tell('disconnect')
  unlinkSocket: ScriptedPlugin['unlinkSocket'] = () => this.#tell('unlinkSocket')
  chmodSocket: ScriptedPlugin['chmodSocket'] = (mode) => this.#tell('chmodSocket', mode)

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async close(): Promise<void> {
    this.kill('SIGKILL')
    await this.exit
    await removeDeadSocket(this.socketPath).catch(() => undefined) // somebody else's by now
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #tell(method: Method, ...parameters: unknown[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      this.#waiting.set(id, (failure) => {
        this.#waiting.delete(id)
        if (failure === undefined) resolve()
        else reject(new PlugstreamError('ERR_USAGE', `the scripted plugin could not ${method}: ${failure}`))
      })
      const message: ParentMessage = { id, method, parameters }
      this.#child.send(message, (failure) => {
        if (failure) this.#waiting.get(id)?.(failure.message)
      })
    })
  }
}
