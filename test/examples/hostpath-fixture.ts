import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Context } from 'mocha'
import { CsiChannel } from '../../lib/csi/channel.js'
import { csiClient, type CsiClient } from '../../lib/csi/client.js'
import type { Volume } from '../../lib/csi/messages/controller.js'
import type { VolumeCapability } from '../../lib/csi/messages/volume-capability.js'
import { PlugstreamError } from '../../lib/errors.js'
import { needs } from '../support/needs.js'

export const mount: VolumeCapability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }
export const block: VolumeCapability = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' }
export const mib = 1n << 20n
/** There, no program called mount is found. */
export const noMounts = { PATH: '/nowhere' }

/** A hostpath driver as its users run it, and a client that tries nothing twice. */
export class HostpathDriver {
  readonly directory: string
  client!: CsiClient
  #channel!: CsiChannel
  #process!: ChildProcess
  readonly #options: readonly string[]

  static async start(options: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<HostpathDriver> {
    const driver = new HostpathDriver(await realpath(await mkdtemp(join(tmpdir(), 'ps-'))), options)
    await driver.run(env)
    return driver
  }

  private constructor(directory: string, options: readonly string[]) {
    this.directory = directory
    this.#options = options
  }

  path(...names: string[]): string {
    return join(this.directory, ...names)
  }

  /** Also for a driver that was killed: it goes on where it was. */
  async run(env: NodeJS.ProcessEnv = {}): Promise<void> {
    const program = ['--import', 'tsx/esm', 'examples/hostpath-driver.ts', '--node-id', 'n1', ...this.#options]
    this.#process = spawn(process.execPath, [...program, '--state-dir', this.path('state')], {
      env: { ...process.env, CSI_ENDPOINT: `unix://${this.path('csi.sock')}`, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let isReady = false
    for await (const line of createInterface(this.#process.stdout!)) {
      isReady = line.includes('listens on')
      if (isReady) break
    }
    if (!isReady) throw new Error('the driver ended before it was ready')
    this.#channel = new CsiChannel(this.path('csi.sock'), 10_000)
    this.client = csiClient({ pick: () => this.#channel, policy: {} })
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const closed = once(this.#process, 'close')
      this.#process.stdout?.resume()
      this.#process.kill('SIGKILL')
      await closed
    }
    await this.#channel.close()
  }

  async end(): Promise<void> {
    await this.kill()
    for (const path of (await this.mounts()).reverse()) execFileSync('umount', [path])
    for (const device of this.loopDevices()) execFileSync('losetup', ['--detach', device])
    await rm(this.directory, { recursive: true })
  }

  async create(name: string, request: Partial<Parameters<CsiClient['createVolume']>[0]> = {}): Promise<Volume> {
    return (await this.client.createVolume({ name, volumeCapabilities: [mount], ...request })).volume
  }

  /** Stages the volume, and gives back where. */
  async stage(volumeId: string, volumeCapability = mount): Promise<string> {
    const stagingTargetPath = this.path(`staging-${volumeId}`)
    await mkdir(stagingTargetPath, { recursive: true })
    await this.client.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability })
    return stagingTargetPath
  }

  /** Stages and publishes the volume, and gives back where it is seen. */
  async publish(volumeId: string, name: string, volumeCapability = mount, readonly = false): Promise<string> {
    const stagingTargetPath = await this.stage(volumeId, volumeCapability)
    const targetPath = this.path(name)
    await this.client.nodePublishVolume({ volumeId, stagingTargetPath, targetPath, volumeCapability, readonly })
    return targetPath
  }

  async unpublish(volumeId: string, targetPath: string): Promise<void> {
    await this.client.nodeUnpublishVolume({ volumeId, targetPath })
    await this.client.nodeUnstageVolume({ volumeId, stagingTargetPath: this.path(`staging-${volumeId}`) })
  }

  /** What the kernel says is mounted below its directory, oldest first. */
  async mounts(): Promise<string[]> {
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
    const points = mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '')
    return points.filter((point) => point.startsWith(`${this.directory}/`))
  }

  loopDevices(): string[] {
    if (process.platform !== 'linux') return []
    const listed = execFileSync('losetup', ['--list', '--noheadings', '--output', 'NAME,BACK-FILE'], {
      encoding: 'utf8',
    })
    const ours = listed.split('\n').filter((line) => line.includes(this.directory))
    return ours.map((line) => line.trim().split(/\s+/)[0] ?? '')
  }
}

/** The gRPC code that a call fails with. */
export async function codeOf(call: Promise<unknown>): Promise<unknown> {
  const failure = await call.then(
    (answer) => answer,
    (error: unknown) => error,
  )
  return failure instanceof PlugstreamError ? (failure.details['grpcCode'] ?? failure.message) : { answered: failure }
}

export function needsMounts(context: Context): void {
  const isThere = process.platform === 'linux' && process.getuid?.() === 0
  needs(context, isThere, 'bind mounts and loop devices need root on Linux')
}
