import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { hostpathCommand } from '../../examples/hostpath-driver/command.js'

/** The example driver, started as its users do: a process that listens on `socketPath`. */
export class HostpathDriver implements AsyncDisposable {
  private constructor(readonly process: ChildProcess) {}

  static async start(socketPath: string, options: Readonly<Record<string, string>>): Promise<HostpathDriver> {
    const [program, ...args] = hostpathCommand(options)
    const child = spawn(program, args, {
      env: { ...process.env, CSI_ENDPOINT: `unix://${socketPath}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const driver = new HostpathDriver(child)
    const said: string[] = []
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      if (!line.includes('listens on')) continue
      child.stdout.resume()
      return driver
    }
    throw new Error(`it ended and said only ${said.join('; ')}`)
  }

  /** How it has ended, code and signal. */
  async end(signal: NodeJS.Signals): Promise<readonly [number | null, NodeJS.Signals | null]> {
    const { process } = this
    if (process.exitCode === null && process.signalCode === null) {
      const closed = once(process, 'close')
      process.kill(signal)
      await closed
    }
    return [process.exitCode, process.signalCode]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
  }
}
