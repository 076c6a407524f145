import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { fromEvent, NEVER, type Observable } from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import { csiKind } from '../../lib/csi/kind.js'
import { Recording } from '../stories/recording.js'
import { inDirectory, isHealthy, kindsOf, reasonsOf, shortTiming, withHost, type Story } from '../stories/support.js'
import { describeWithMounts } from '../stories/volumes-support.js'
import { HostpathDriver } from './hostpath-driver.js'
import { mountsBelow, unmountBelow } from './mounts.js'
import { needsTools, tools } from './tools.js'

/** A program that runs until it is ended, and what it says, line by line. */
class Program implements AsyncDisposable {
  readonly lines: Recording<string>
  readonly #child: ChildProcess

  constructor([command, ...args]: readonly [string, ...string[]], output: 'stdout' | 'stderr' = 'stdout') {
    const stdio =
      output === 'stdout' ? (['ignore', 'pipe', 'ignore'] as const) : (['ignore', 'ignore', 'pipe'] as const)
    this.#child = spawn(command, args, { stdio: [...stdio] })
    const line$ = fromEvent(createInterface(this.#child[output]!), 'line') as Observable<string>
    this.lines = new Recording(line$)
  }

  /** How it has ended, code and signal. */
  async end(signal?: NodeJS.Signals): Promise<readonly unknown[]> {
    const child = this.#child
    if (child.exitCode === null && child.signalCode === null) {
      if (signal) child.kill(signal)
      await once(child, 'close')
    }
    this.lines.stop()
    return [child.exitCode, child.signalCode]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
  }
}

/** A host with a directory for registration sockets, and the programs in Go that come to it. */
interface Door extends Story {
  readonly root: string
  socketOf(driver: string): string
  /** Kubernetes' mock driver; resolves when it listens. */
  driver(driver: string, name: string): Promise<Program>
  /** A registrar made with Kubernetes' own bindings. */
  registrar(driver: string, file?: string): Promise<Program>
}

const isTold = (line: string): boolean => line === '{"error":"","registered":true}'

function aDoor(tell: (door: Door) => Promise<void>): () => Promise<void> {
  return () =>
    inDirectory(async (root) => {
      const directory = join(root, 'registration')
      const programs = await tools()
      const init = { task$: NEVER, registrationDirectory: directory, timing: shortTiming }
      try {
        await withHost(join(root, 'host'), init, (story) => {
          const keep = (program: Program): Program => {
            story.keep({ close: async () => void (await program.end('SIGKILL')) })
            return program
          }
          const socketOf = (driver: string): string => join(root, `${driver}.sock`)
          return tell({
            ...story,
            root,
            socketOf,
            driver: async (driver, name) => {
              const flags = { drivername: name, endpoint: `unix://${socketOf(driver)}`, statedir: join(root, driver) }
              const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`)
              const program = keep(new Program([join(programs, 'mock-driver'), ...args], 'stderr'))
              await program.lines.until((line) => line.includes('listens on'))
              return program
            },
            registrar: async (driver, file = `${driver}-reg.sock`) =>
              keep(new Program([join(programs, 'registrar'), socketOf(driver), join(directory, file)])),
          })
        })
      } finally {
        if (process.platform === 'linux') unmountBelow(root)
      }
    })
}

const name = 'hostpath.csi.example'

describe('a driver in Go with a registrar of Kubernetes beside it', function () {
  this.timeout(60_000)
  before(async function () {
    await needsTools(this)
  })

  it(
    'is registered as a node plugin, known, and taken off when the registrar ends',
    aDoor(async ({ host, driver, registrar, registry, health, fingerprints, problems }) => {
      await driver('a', name)
      const beside = await registrar('a')
      await beside.lines.until(isTold)
      const { plugin, node } = await fingerprints.until(isHealthy)
      expect([plugin.type, plugin.name, plugin.version, node?.id]).to.deep.equal(['csi-node', name, '0.3.0', name])
      const client = host.client<CsiClient>('csi-node', name)
      expect((await client.nodeGetInfo()).nodeId).to.equal(name)
      expect(await beside.end('SIGTERM')).to.deep.equal([0, null])
      await registry.until(({ kind }) => kind === 'deregistered')
      expect(health.all.at(-1)).to.deep.include({ final: true, reason: 'deregistered' })
      expect(problems.all).to.deep.equal([])
    }),
  )

  it(
    'is unhealthy when it is killed, healthy when it is back, and never misses its registrar for that',
    aDoor(async ({ driver, registrar, registry, health }) => {
      const first = await driver('a', name)
      const beside = await registrar('a')
      await beside.lines.until(isTold)
      await health.until(isHealthy)
      await beside.end('SIGKILL')
      health.skip()
      await first.end('SIGKILL')
      await health.until((event) => !isHealthy(event))
      await driver('a', name)
      await health.until(isHealthy)
      health.skip()
      await (await registrar('a')).lines.until(isTold)
      expect([kindsOf(registry.all), reasonsOf(health.fresh)]).to.deep.equal([['registered'], []])
    }),
  )

  it(
    'is refused while another has its name, upon which its registrar ends, and has it when that one is gone',
    aDoor(async ({ driver, registrar, registry, root }) => {
      await driver('a', name)
      await driver('b', name)
      const first = await registrar('a')
      await first.lines.until(isTold)
      mkdirSync(join(root, 'registration', 'b'))
      const second = await registrar('b', 'b/reg.sock')
      await second.lines.until((line) => line.includes('is taken by the driver that was announced at'))
      expect(await second.end()).to.deep.equal([1, null])
      await first.end('SIGTERM')
      await registry.until(({ kind, plugin }) => kind === 'registered' && plugin.allocId.endsWith('b/reg.sock'))
    }),
  )

  it(
    'serves beside one in TypeScript, whose registrar is the same',
    aDoor(async ({ registrar, socketOf, fingerprints, root }) => {
      const options = { name: 'disk.example.com', 'node-id': 'n7', 'state-dir': join(root, 'volumes') }
      await using _driver = await HostpathDriver.start(socketOf('h'), options)
      await (await registrar('h')).lines.until(isTold)
      const { plugin, node } = await fingerprints.until(isHealthy)
      expect([plugin.name, node?.id]).to.deep.equal(['disk.example.com', 'n7'])
    }),
  )
})

describeWithMounts('volumes of a driver in Go with a registrar of Kubernetes beside it', function () {
  this.timeout(60_000)
  before(async function () {
    await needsTools(this)
  })

  it(
    'are mounted for all who use them, and unmounted, over the death of the registrar',
    aDoor(async ({ host, driver, registrar, socketOf, root }) => {
      await driver('a', name)
      const beside = await registrar('a')
      await beside.lines.until(isTold)
      const channel = csiKind().open(socketOf('a'))
      const capability = { mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } } as const
      const { volume } = await channel.call('CreateVolume', { name: 'data', volume_capabilities: [capability] })
      await channel.close()
      const of = { plugin: name, volumeId: volume?.volume_id ?? '' }
      const data = await host.volumes.mount({ ...of, allocId: 'web' })
      writeFileSync(join(data.path, 'hello'), 'world')
      await beside.end('SIGKILL')
      const again = await host.volumes.mount({ ...of, allocId: 'other' })
      expect(readFileSync(join(again.path, 'hello'), 'utf8')).to.equal('world')
      await again.unmount()
      await data.unmount()
      expect(mountsBelow(join(root, 'host'))).to.deep.equal([])
    }),
  )
})
