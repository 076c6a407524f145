import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  access,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import type { Context } from 'mocha'
import { RawClient } from '../lib/csi/server-client.js'

const mount = { access_type: 'mount', mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }
const noMounts = { PATH: '/nowhere' } // there, no program called mount is found
const mib = 1024 * 1024

describe('the hostpath driver', () => {
  let directory: string
  let socketPath: string
  let client: RawClient
  let staging: string
  let target: string
  const drivers: ChildProcess[] = []

  beforeEach(async () => {
    directory = await realpath(await mkdtemp(join(tmpdir(), 'ps-')))
    socketPath = join(directory, 'csi.sock')
    staging = join(directory, 'staging')
    target = join(directory, 'targets', 'a')
    await mkdir(staging)
    await mkdir(join(directory, 'targets'))
    client = new RawClient(socketPath)
  })
  afterEach(async () => {
    await client.close()
    for (const driver of drivers.splice(0)) await end(driver, 'SIGKILL')
    for (const path of (await mountsBelow(directory)).reverse()) execFileSync('umount', [path])
    await rm(directory, { recursive: true })
  })

  /** Starts the driver as its users do, and gives back what it says at its start. */
  async function start(options: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<string[]> {
    const parameters = [
      '--import',
      'tsx/esm',
      'examples/hostpath-driver.ts',
      '--state-dir',
      join(directory, 'state'),
      ...options,
    ]
    const driver = spawn(process.execPath, parameters, {
      env: { ...process.env, CSI_ENDPOINT: `unix://${socketPath}`, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    drivers.push(driver)
    const said: string[] = []
    for await (const line of createInterface(driver.stdout)) {
      said.push(line)
      if (line.includes('listens on')) return said
    }
    throw new Error(`it ended and said only ${said.join('; ')}`)
  }

  async function create(name: string, capacity_range?: object): Promise<string> {
    const { volume } = await client.call('Controller.CreateVolume', {
      name,
      volume_capabilities: [mount],
      capacity_range,
    })
    return (volume as { volume_id: string }).volume_id
  }
  const stage = (volume_id: string) => ({ volume_id, staging_target_path: staging, volume_capability: mount })
  const publish = (volume_id: string, target_path = target, readonly = false) => ({
    ...stage(volume_id),
    target_path,
    readonly,
  })

  it('says who it is and what it can do', async () => {
    await start(['--name', 'disk.example.com', '--version', '3.2.1', '--node-id', 'n7'])
    expect(await client.call('Identity.GetPluginInfo')).to.include({
      name: 'disk.example.com',
      vendor_version: '3.2.1',
    })
    expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: true } })
    expect(JSON.stringify(await client.call('Identity.GetPluginCapabilities'))).to.contain('CONTROLLER_SERVICE')
    expect(JSON.stringify(await client.call('Controller.ControllerGetCapabilities'))).to.contain('CREATE_DELETE_VOLUME')
    expect(JSON.stringify(await client.call('Node.NodeGetCapabilities'))).to.contain('STAGE_UNSTAGE_VOLUME')
    expect(await client.call('Node.NodeGetInfo')).to.deep.include({
      node_id: 'n7',
      accessible_topology: { segments: { 'topology.disk.example.com/node': 'n7' } },
    })
  })

  for (const [mode, serves, not] of [
    ['controller', 'Controller.ControllerGetCapabilities', 'Node.NodeGetInfo'],
    ['node', 'Node.NodeGetInfo', 'Controller.ControllerGetCapabilities'],
  ] as const) {
    it(`is only a ${mode} with --mode ${mode}`, async () => {
      await start(['--mode', mode])
      await client.call(serves)
      expect(await client.failure(not)).to.include({ code: status.UNIMPLEMENTED })
      const capabilities = JSON.stringify(await client.call('Identity.GetPluginCapabilities'))
      expect(capabilities.includes('CONTROLLER_SERVICE')).to.equal(mode === 'controller')
    })
  }

  it('makes, lists and deletes volumes, each as often as it is asked', async () => {
    await start()
    const id = await create('v1', { required_bytes: mib })
    expect(await create('v1', { required_bytes: mib })).to.equal(id)
    expect(await create('v1', { required_bytes: mib / 2, limit_bytes: mib })).to.equal(id)
    for (const capacity_range of [{ required_bytes: mib + 1 }, { limit_bytes: mib - 1 }]) {
      const other = { name: 'v1', volume_capabilities: [mount], capacity_range }
      expect(await client.failure('Controller.CreateVolume', other)).to.include({ code: status.ALREADY_EXISTS })
    }
    const outOfRange = {
      name: 'v2',
      volume_capabilities: [mount],
      capacity_range: { required_bytes: 10, limit_bytes: 9 },
    }
    expect(await client.failure('Controller.CreateVolume', outOfRange)).to.include({ code: status.OUT_OF_RANGE })
    const limited = await create('limited', { limit_bytes: 9 })
    expect(JSON.stringify(await client.call('Controller.ListVolumes')))
      .to.contain(limited)
      .and.to.contain('"9"')

    const { available_capacity } = await client.call('Controller.GetCapacity')
    expect(BigInt(available_capacity as string) > 0n).to.equal(true)
    const valid = { volume_id: id, volume_capabilities: [mount] }
    expect((await client.call('Controller.ValidateVolumeCapabilities', valid)).confirmed).not.to.equal(null)
    const shared = { ...mount, access_mode: { mode: 'MULTI_NODE_MULTI_WRITER' } }
    const invalid = await client.call('Controller.ValidateVolumeCapabilities', {
      volume_id: id,
      volume_capabilities: [shared],
    })
    expect(invalid).to.deep.equal({ confirmed: null, message: 'only access from a single node is supported' })

    await client.call('Controller.DeleteVolume', { volume_id: id })
    await client.call('Controller.DeleteVolume', { volume_id: id })
    expect(await client.failure('Controller.ValidateVolumeCapabilities', valid)).to.include({ code: status.NOT_FOUND })
    await client.call('Controller.DeleteVolume', { volume_id: limited })
    expect(await client.call('Controller.ListVolumes')).to.deep.equal({ entries: [], next_token: '' })
  })

  it('lists in pages that stay right when volumes go between them', async () => {
    await start()
    const ids = (await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => create(name)))).sort()
    const page = async (starting_token: string) => {
      const { entries, next_token } = await client.call('Controller.ListVolumes', { max_entries: 2, starting_token })
      return { ids: (entries as { volume: { volume_id: string } }[]).map(({ volume }) => volume.volume_id), next_token }
    }
    const first = await page('')
    expect(first.ids).to.deep.equal(ids.slice(0, 2))
    await client.call('Controller.DeleteVolume', { volume_id: ids[2] })
    const second = await page(first.next_token as string)
    expect(second).to.deep.equal({ ids: ids.slice(3), next_token: '' })
    const bad = { starting_token: 'nonsense' }
    expect(await client.failure('Controller.ListVolumes', bad)).to.include({ code: status.ABORTED })
    expect(await client.failure('Controller.ListVolumes', { max_entries: -1 })).to.include({
      code: status.INVALID_ARGUMENT,
    })
  })

  it('names the field that is missing or not supported', async () => {
    await start([], noMounts)
    const id = await create('v1')
    const block = { access_type: 'block', block: {}, access_mode: mount.access_mode }
    for (const [rpc, request, text] of [
      ['Controller.CreateVolume', { volume_capabilities: [mount] }, 'name'],
      ['Controller.CreateVolume', { name: 'v' }, 'volume_capabilities'],
      ['Controller.CreateVolume', { name: 'v', volume_capabilities: [block] }, 'mount'],
      [
        'Controller.CreateVolume',
        { name: 'v', volume_capabilities: [{ access_type: 'mount', mount: {} }] },
        'single node',
      ],
      ['Controller.DeleteVolume', {}, 'volume_id'],
      ['Node.NodeStageVolume', { ...stage(id), staging_target_path: '' }, 'staging_target_path'],
      ['Node.NodeStageVolume', { ...stage(id), volume_capability: null }, 'volume_capability'],
      ['Node.NodeUnstageVolume', { volume_id: id }, 'staging_target_path'],
      ['Node.NodeUnpublishVolume', { volume_id: id }, 'target_path'],
      ['Node.NodeGetVolumeStats', { volume_id: id }, 'volume_path'],
    ] as const) {
      const { code, details } = await client.failure(rpc, request)
      expect(code, `${rpc} ${details}`).to.equal(status.INVALID_ARGUMENT)
      expect(details).to.contain(text)
    }
  })

  it('takes only ids that it made, and leaves other paths alone', async () => {
    await start()
    const precious = join(directory, 'precious')
    await mkdir(join(precious, 'data'), { recursive: true })
    await writeFile(join(precious, 'record.json'), JSON.stringify({ id: 'x', name: 'x', published: [] }))
    for (const volume_id of ['../../precious', `volume-${'0'.repeat(32)}`, '.', 'volume-../../../precious']) {
      await client.call('Controller.DeleteVolume', { volume_id })
      for (const [rpc, request] of [
        ['Node.NodeUnpublishVolume', { volume_id, target_path: precious }],
        ['Node.NodeUnstageVolume', { volume_id, staging_target_path: precious }],
        ['Node.NodeStageVolume', stage(volume_id)],
      ] as const) {
        expect(await client.failure(rpc, request), rpc).to.include({ code: status.NOT_FOUND })
      }
    }
    const id = await create('v1')
    await client.call('Node.NodeUnpublishVolume', { volume_id: id, target_path: precious })
    expect(await readdir(precious)).to.have.members(['data', 'record.json'])
  })

  for (const [how, env] of [
    ['by bind mounts', {}],
    ['in directory mode', noMounts],
  ] as const) {
    it(`takes a volume through its whole life ${how}`, async function () {
      if (how === 'by bind mounts') needsMounts(this)
      const said = (await start([], env)).join('\n')
      expect(said).to.contain(
        how === 'by bind mounts' ? 'by bind mounts' : 'by directory mode (no bind mounts: spawn mount ENOENT)',
      )
      const id = await create('v1')
      const early = await client.failure('Node.NodePublishVolume', publish(id))
      expect(early).to.include({ code: status.FAILED_PRECONDITION })

      for (let again = 0; again < 2; again++) await client.call('Node.NodeStageVolume', stage(id))
      for (let again = 0; again < 2; again++) await client.call('Node.NodePublishVolume', publish(id))
      await writeFile(join(target, 'file'), 'kept')
      expect(await readFile(join(staging, 'file'), 'utf8')).to.equal('kept')
      expect(await readFile(join(directory, 'state', 'volumes', id, 'data', 'file'), 'utf8')).to.equal('kept')
      if (how === 'by bind mounts') expect(await mountsBelow(directory)).to.deep.equal([staging, target])
      else expect(await readlink(target)).to.equal(join(directory, 'state', 'volumes', id, 'data'))

      const { usage } = (await client.call('Node.NodeGetVolumeStats', { volume_id: id, volume_path: target })) as {
        usage: { unit: string; total: string }[]
      }
      expect(usage[0]).to.include({ unit: 'BYTES' })
      expect(BigInt(usage[0]!.total) > 0n).to.equal(true)
      const elsewhere = { volume_id: id, volume_path: directory }
      expect(await client.failure('Node.NodeGetVolumeStats', elsewhere)).to.include({ code: status.NOT_FOUND })
      expect(await client.failure('Controller.DeleteVolume', { volume_id: id })).to.include({
        code: status.FAILED_PRECONDITION,
      })
      const other = await client.failure('Node.NodePublishVolume', publish(id, target, true))
      expect(other.code).to.equal(how === 'by bind mounts' ? status.ALREADY_EXISTS : status.INVALID_ARGUMENT)

      for (let again = 0; again < 2; again++) {
        await client.call('Node.NodeUnpublishVolume', { volume_id: id, target_path: target })
        expect(await exists(target)).to.equal(false)
      }
      for (let again = 0; again < 2; again++) {
        await client.call('Node.NodeUnstageVolume', { volume_id: id, staging_target_path: staging })
        expect((await lstat(staging)).isDirectory()).to.equal(true)
        expect(await readdir(staging)).to.deep.equal([])
      }
      expect(await mountsBelow(directory)).to.deep.equal([])
      await client.call('Controller.DeleteVolume', { volume_id: id })
      expect(await readdir(join(directory, 'state', 'volumes'))).to.deep.equal([])
    })

    it(`publishes nowhere where something else is, ${how}`, async function () {
      if (how === 'by bind mounts') needsMounts(this)
      await start([], env)
      const [one, two] = [await create('one'), await create('two')]
      const staged = { ...stage(two), staging_target_path: join(directory, 'staging-two') }
      await client.call('Node.NodeStageVolume', stage(one))
      await client.call('Node.NodeStageVolume', staged)
      await client.call('Node.NodePublishVolume', publish(one))
      await writeFile(join(directory, 'targets', 'file'), '')
      await symlink(directory, join(directory, 'targets', 'link'))
      for (const path of [target, directory, join(directory, 'targets', 'file'), join(directory, 'targets', 'link')]) {
        const refused = await client.failure('Node.NodePublishVolume', { ...publish(two, path), ...staged })
        expect(refused.code, path).to.equal(status.INTERNAL)
      }
      await writeFile(join(target, 'of-one'), '')
      expect(await readdir(staging)).to.deep.equal(['of-one'])
    })
  }

  it('publishes read-only so that nobody can write, beside a target that is written to', async function () {
    needsMounts(this)
    await start()
    const id = await create('v1')
    const readonly = join(directory, 'targets', 'ro')
    await client.call('Node.NodeStageVolume', stage(id))
    await client.call('Node.NodePublishVolume', publish(id))
    for (let again = 0; again < 2; again++) await client.call('Node.NodePublishVolume', publish(id, readonly, true))
    await writeFile(join(target, 'file'), 'kept')
    expect(await readFile(join(readonly, 'file'), 'utf8')).to.equal('kept')
    const failure = await writeFile(join(readonly, 'file'), 'changed').catch((error: unknown) => error)
    expect(failure).to.include({ code: 'EROFS' })
  })

  describe('while the mount program takes its time', () => {
    let started: string
    let release: string
    let slowMount: NodeJS.ProcessEnv

    beforeEach(async () => {
      const programs = join(directory, 'programs')
      started = join(directory, 'started')
      release = join(directory, 'release')
      await mkdir(programs)
      execFileSync('mkfifo', [started, release])
      const wait = `case "$*" in *trial*) ;; *) echo > '${started}'; read go < '${release}' ;; esac`
      await writeFile(join(programs, 'mount'), `#!/bin/sh\n${wait}\n`, { mode: 0o755 })
      await writeFile(join(programs, 'umount'), '#!/bin/sh\n', { mode: 0o755 })
      slowMount = { PATH: programs }
    })

    it('answers ABORTED to a second operation on the volume, serves others, and ends the first well', async function () {
      needsLinux(this)
      await start([], slowMount)
      const id = await create('v1')
      const first = client.call('Node.NodeStageVolume', stage(id))
      await readFile(started)
      expect(await client.failure('Node.NodeStageVolume', stage(id))).to.include({ code: status.ABORTED })
      expect(await client.failure('Controller.DeleteVolume', { volume_id: id })).to.include({ code: status.ABORTED })
      await create('v2')
      await writeFile(release, '\n')
      await first
      await client.call('Controller.DeleteVolume', { volume_id: id })
    })

    it('finishes the call after SIGTERM, and then ends with 0', async function () {
      needsLinux(this)
      await start([], slowMount)
      const call = client.call('Node.NodeStageVolume', stage(await create('v1')))
      await readFile(started)
      const ended = end(drivers[0]!, 'SIGTERM')
      await writeFile(release, '\n')
      await call
      expect(await ended).to.deep.equal([0, null])
    })
  })

  it('ends with 0 after SIGTERM, and takes its socket along', async () => {
    await start()
    await client.call('Identity.Probe')
    expect(await end(drivers[0]!, 'SIGTERM')).to.deep.equal([0, null])
    expect(await exists(socketPath)).to.equal(false)
  })

  it('that was killed leaves its socket and its mounts, and goes on from there when it starts again', async function () {
    needsMounts(this)
    await start()
    const id = await create('v1', { required_bytes: mib })
    await client.call('Node.NodeStageVolume', stage(id))
    await client.call('Node.NodePublishVolume', publish(id))
    await writeFile(join(target, 'file'), 'kept')
    await end(drivers[0]!, 'SIGKILL')
    expect(await exists(socketPath)).to.equal(true)
    expect(await readFile(join(target, 'file'), 'utf8')).to.equal('kept')

    await start(['--version', '2.0.0'])
    await client.close()
    client = new RawClient(socketPath)
    expect(await client.call('Identity.GetPluginInfo')).to.include({ vendor_version: '2.0.0' })
    expect(await create('v1', { required_bytes: mib })).to.equal(id)
    await client.call('Node.NodeStageVolume', stage(id))
    await client.call('Node.NodePublishVolume', publish(id))
    expect(await mountsBelow(directory)).to.deep.equal([staging, target])
    expect(await client.failure('Controller.DeleteVolume', { volume_id: id })).to.include({
      code: status.FAILED_PRECONDITION,
    })
    await client.call('Node.NodeUnpublishVolume', { volume_id: id, target_path: target })
    await client.call('Node.NodeUnstageVolume', { volume_id: id, staging_target_path: staging })
    await client.call('Controller.DeleteVolume', { volume_id: id })
    expect(await mountsBelow(directory)).to.deep.equal([])
  })
})

function needsMounts(context: Context): void {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) skip(context, 'bind mounts need root on Linux')
}

function needsLinux(context: Context): void {
  if (process.platform !== 'linux') skip(context, 'only on Linux the driver calls a mount program')
}

function skip(context: Context, reason: string): void {
  if (process.env['CI']) throw new Error(reason)
  process.stdout.write(`      not run: ${reason}\n`)
  context.skip()
}

/** What the kernel says is mounted below a directory, oldest first. */
async function mountsBelow(directory: string): Promise<string[]> {
  const mountinfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const points = mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '')
  return points.filter((point) => point.startsWith(`${directory}/`))
}

async function end(driver: ChildProcess, signal: NodeJS.Signals): Promise<unknown[]> {
  if (driver.exitCode !== null || driver.signalCode !== null) return [driver.exitCode, driver.signalCode]
  const closed = once(driver, 'close')
  driver.stdout?.resume()
  driver.kill(signal)
  return closed
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
