import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { isAlive, listProcesses, seeProcess, ticksNow } from '../../lib/task/process-sight.js'
import { needs } from '../support/needs.js'
import { inDirectory } from './support.js'

const program = fileURLToPath(new URL('./programs/keeping-host.ts', import.meta.url))

/** A host in a process of its own, and what it has said so far. */
class Host {
  readonly lines: string[] = []
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  readonly begunAtTicks = ticksNow()
  #heard: () => void = () => undefined

  constructor(stateDir: string, ...args: string[]) {
    this.#child = spawn(process.execPath, ['--import', 'tsx/esm', program, stateDir, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#closed = once(this.#child, 'close')
    createInterface(this.#child.stdout!).on('line', (line) => {
      this.lines.push(line)
      this.#heard()
    })
  }

  get ended(): Promise<unknown> {
    return this.#closed
  }

  /** Resolves with the line that starts so; rejects where the host ends without. */
  async says(start: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.startsWith(start))
      if (found !== undefined) return found
      const heard = new Promise<void>((resolve) => (this.#heard = resolve))
      await Promise.race([heard, this.#closed.then(() => Promise.reject(new Error(`ended: ${this.lines.join('; ')}`)))])
    }
  }

  async pid(task: string): Promise<number> {
    return Number((await this.says(`begun ${task} `)).split(' ')[2])
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  async close(): Promise<void> {
    this.#child.stdin!.end()
    await this.says('closed')
    await this.#closed
  }
}

/** The tasks that have the story's directory in their environment; what they start of their own is none. */
async function tasksOf(stateDir: string): Promise<number[]> {
  const hasEndpoint = (pid: number): boolean => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`CSI_ENDPOINT=unix://${stateDir}`)
    } catch {
      return false
    }
  }
  const leaders = (await listProcesses()).filter((one) => isAlive(one) && one.group === one.pid)
  return leaders.map(({ pid }) => pid).filter(hasEndpoint)
}

function isThere(pid: number): boolean {
  const seen = seeProcess(pid)
  return seen !== undefined && isAlive(seen)
}

describe('tasks that outlive their host', function () {
  this.timeout(120_000)
  before(function () {
    needs(this, process.platform === 'linux', 'only Linux tells one process from the next of its number')
  })

  const hosts: Host[] = []
  const aHost = (...args: ConstructorParameters<typeof Host>): Host => {
    const host = new Host(...args)
    hosts.push(host)
    return host
  }
  afterEach(() => Promise.all(hosts.splice(0).map((host) => host.kill())))

  it('are the same processes after twenty hosts were killed, one after the other, and are ended by the last', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir)
      const pids = [await first.pid('driver'), await first.pid('plain')]
      await first.says('healthy')
      await first.kill()
      for (let round = 0; round < 20; round++) {
        const host = aHost(stateDir)
        // Killed at another moment each time: as it begins, as it has taken over, and when all is well.
        if (round % 3 === 1) expect(await host.pid('driver')).to.equal(pids[0])
        if (round % 3 === 2) await host.says('healthy 1.0.0')
        await host.kill()
        expect(await tasksOf(stateDir)).to.deep.equal([pids[0]])
      }
      const last = aHost(stateDir, 'stop')
      expect([await last.pid('driver'), await last.pid('plain')]).to.deep.equal(pids)
      await last.says('healthy')
      await last.close()
      expect(pids.filter(isThere)).to.deep.equal([])
    }))

  it('outlive a host that is closed, if it is to keep them', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir)
      const pids = [await first.pid('driver'), await first.pid('plain')]
      await first.says('healthy')
      await first.close()
      const last = aHost(stateDir, 'stop')
      expect([await last.pid('driver'), await last.pid('plain')]).to.deep.equal(pids)
      await last.close()
      expect(pids.filter(isThere)).to.deep.equal([])
    }))

  it('come back under their policy where they end, and the end is seen at once', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir)
      await first.says('healthy')
      await first.kill()
      const last = aHost(stateDir, 'stop')
      const pid = await last.pid('driver')
      await last.says('healthy')
      process.kill(pid, 'SIGKILL')
      // Nobody's child tells how it ended.
      await last.says('exited driver null null')
      last.lines.splice(0)
      expect(await last.pid('driver')).to.not.equal(pid)
      await last.says('healthy')
      await last.close()
    }))

  it('are found where they ended while no host was there, and begin anew', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir)
      const pids = [await first.pid('driver'), await first.pid('plain')]
      await first.says('healthy')
      await first.kill()
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      const last = aHost(stateDir, 'stop')
      const now = [await last.pid('driver'), await last.pid('plain')]
      expect(now.filter((pid) => pids.includes(pid))).to.deep.equal([])
      await last.says('healthy')
      await last.close()
    }))

  it('are found where the host died after they had begun and before that was on record', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir, 'keep', '1.0.0', 'unsaved')
      await first.ended
      const last = aHost(stateDir, 'stop')
      const pids = [await last.pid('driver'), await last.pid('plain')]
      await last.says('healthy')
      expect(await tasksOf(stateDir)).to.deep.equal([pids[0]])
      expect(first.lines).to.deep.equal([])
      const [driver, plain] = pids.map((pid) => seeProcess(pid)?.startTicks ?? 0)
      expect(Math.max(driver!, plain!)).to.be.at.most(last.begunAtTicks)
      await last.close()
      expect(pids.filter(isThere)).to.deep.equal([])
    }))

  it('are ended, and begun anew, where they are to be something else', () =>
    inDirectory(async (stateDir) => {
      const first = aHost(stateDir)
      const pids = [await first.pid('driver'), await first.pid('plain')]
      await first.says('healthy 1.0.0')
      await first.kill()
      const last = aHost(stateDir, 'stop', '2.0.0')
      await last.says('healthy 2.0.0')
      expect(await last.pid('plain')).to.equal(pids[1])
      expect(await last.pid('driver')).to.not.equal(pids[0])
      expect(isThere(pids[0]!)).to.be.false
      await last.close()
    }))
})
