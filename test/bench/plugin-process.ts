import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Order } from './programs/plugin.js'
import { instant } from './scratch.js'

/** A plugin in a process of its own. One order at a time. */
export class PluginProcess {
  readonly #child: ChildProcess = fork(fileURLToPath(new URL('./programs/plugin.ts', import.meta.url)), [], {
    execArgv: ['--import', import.meta.resolve('tsx/esm')],
  })

  /** The instant at which it listens. */
  listen(socketPath: string, latencyMs = 0): Promise<number> {
    return this.#tell({ kind: 'listen', socketPath, latencyMs })
  }

  async stopListening(socketPath: string): Promise<void> {
    await this.#tell({ kind: 'close', socketPath })
  }

  /** The instant before it is killed. */
  kill(): number {
    const at = instant()
    this.#child.kill('SIGKILL')
    return at
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.kill()
    await gone
  }

  async #tell(order: Order): Promise<number> {
    const answer = once(this.#child, 'message')
    this.#child.send(order)
    const [at] = (await answer) as [number]
    return at
  }
}
