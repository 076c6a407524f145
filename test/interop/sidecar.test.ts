import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { expect } from 'chai'
import { Scratch } from '../support/sockets.js'
import { HostpathDriver } from './hostpath-driver.js'
import { needsTools } from './tools.js'

/** After which a sidecar that tells nothing is given up. */
const patienceMs = 45_000

/** `programs/sidecar`: what it tells, a line each, and the question it takes. */
class Sidecar implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #output: Interface
  readonly #lines: AsyncIterator<string>

  constructor(program: string, socketPath: string) {
    const child = spawn(program, [socketPath], {
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: patienceMs,
      killSignal: 'SIGKILL',
    })
    this.#process = child
    this.#output = createInterface(child.stdout)
    this.#lines = this.#output[Symbol.asyncIterator]()
  }

  async next(): Promise<Record<string, unknown>> {
    const line = await this.#lines.next()
    if (line.done) throw new Error('it has ended')
    return JSON.parse(line.value) as Record<string, unknown>
  }

  async answers(): Promise<Record<string, unknown>> {
    this.#process.stdin?.write('\n')
    return this.next()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#process, 'close')
    this.#process.kill('SIGKILL')
    await closed
    this.#output.close()
  }
}

describe('a driver served by this package, reached through the library of the Kubernetes sidecars', () => {
  let tools: string
  before(async function () {
    tools = await needsTools(this)
  })

  it('tells who it is, answers until it is killed, and again when it is back', async function () {
    this.timeout(2 * patienceMs)
    using scratch = new Scratch()
    const socketPath = scratch.file('csi.sock')
    const options = { name: 'disk.example.com', 'node-id': 'n7', 'state-dir': scratch.file('data') }
    await using driver = await HostpathDriver.start(socketPath, options)
    await using sidecar = new Sidecar(join(tools, 'sidecar'), socketPath)
    expect(await sidecar.next()).to.deep.equal({ name: 'disk.example.com' })
    const [controller] = Object.values(await sidecar.next())
    expect(controller).to.include('CREATE_DELETE_VOLUME')
    expect(await sidecar.next()).to.deep.equal({ isController: true })
    expect(await sidecar.next()).to.deep.equal({ node: 'n7' })
    for (let again = 0; again < 2; again++) expect(await sidecar.answers()).to.deep.equal({ ready: true })

    await driver.end('SIGKILL')
    expect(await sidecar.answers()).to.have.keys('failure')
    await using again = await HostpathDriver.start(socketPath, options)
    expect(await sidecar.answers()).to.deep.equal({ ready: true })
    expect(await again.end('SIGTERM')).to.deep.equal([0, null])
  })
})
