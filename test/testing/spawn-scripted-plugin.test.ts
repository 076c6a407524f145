import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { RawClient } from '../lib/csi/server-client.js'
import {
  scriptedPlugin,
  scriptedPluginCommand,
  spawnScriptedPlugin,
  type PluginScript,
  type SpawnedPlugin,
} from './index.js'

describe('a scripted plugin of its own process', () => {
  let directory: string
  let socketPath: string
  let client: RawClient
  const plugins: SpawnedPlugin[] = []

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ps-'))
    socketPath = join(directory, 'csi.sock')
    client = new RawClient(socketPath)
  })
  afterEach(async () => {
    await client.close()
    for (const plugin of plugins.splice(0)) await plugin.close()
    expect(await readdir(directory)).to.deep.equal([])
    await rm(directory, { recursive: true })
  })

  async function start(script: PluginScript = {}) {
    const plugin = await spawnScriptedPlugin({ socketPath, script })
    plugins.push(plugin)
    return plugin
  }

  it('does what its script and what it is told says, and tells of its calls', async () => {
    const plugin = await start({ version: '2' })
    expect(plugin.pid).not.to.equal(process.pid)
    const probed = plugin.waitForCall('Probe')
    expect(await client.call('Identity.GetPluginInfo')).to.include({ vendor_version: '2' })
    await plugin.change({ ready: false })
    expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: false } })
    await plugin.reply('NodePublishVolume', { status: 'NOT_FOUND' })
    expect(await client.failure('Node.NodePublishVolume', { volume_id: 'v1' })).to.include({ code: status.NOT_FOUND })
    expect((await probed).at).to.be.at.most(Date.now())
    const published = await plugin.waitForCall('NodePublishVolume')
    expect(published.request).to.include({ volume_id: 'v1' })
    expect(plugin.calls.map(({ rpc }) => rpc)).to.deep.equal(['GetPluginInfo', 'Probe', 'NodePublishVolume'])
  })

  it('listens, rebinds, unlinks, changes the mode, and disconnects when it is told', async () => {
    const plugin = await start({ listen: 'on-demand' })
    await plugin.listen()
    await plugin.chmodSocket(0o644)
    await plugin.rebind({ version: '3' })
    expect(await client.call('Identity.GetPluginInfo')).to.include({ vendor_version: '3' })
    await plugin.unlinkSocket()
    expect(await readdir(directory)).to.deep.equal([])
    await plugin.disconnect()
    expect(await client.failure('Identity.Probe')).to.include({ code: status.UNAVAILABLE })
  })

  it('says why where it cannot do what it is told', async () => {
    const plugin = await start({ listen: 'on-demand' })
    const refused = await plugin.chmodSocket(0o644).catch((failure: unknown) => failure)
    expect((refused as Error).message)
      .to.contain('chmodSocket')
      .and.to.contain('ENOENT')
  })

  it('exits in the middle of a call, which is in the log all the same; its socket stays until it is closed', async () => {
    const plugin = await start({ replies: { NodeStageVolume: [{ fault: { exit: 7 } }] } })
    expect(await client.failure('Node.NodeStageVolume')).to.include({ code: status.UNAVAILABLE })
    expect(await plugin.exit).to.deep.equal({ code: 7, signal: null })
    await plugin.waitForCall('NodeStageVolume')
    const never = await plugin.waitForCall('NodeStageVolume', 2).catch((failure: unknown) => failure)
    expect(never).to.include({ code: 'ERR_CLOSED' })
    expect(await plugin.change({}).catch((failure: unknown) => failure)).to.include({ code: 'ERR_USAGE' })
    expect(await readdir(directory)).to.deep.equal(['csi.sock'])
  })

  it('is killed, and started again as another version', async () => {
    const plugin = await start({ version: '1' })
    plugin.kill('SIGKILL')
    expect(await plugin.exit).to.deep.equal({ code: null, signal: 'SIGKILL' })
    await start({ version: '2' })
    expect(await client.call('Identity.GetPluginInfo')).to.include({ vendor_version: '2' })
  })

  it('ends well after SIGTERM, and takes its socket along', async () => {
    const plugin = await start({ replies: { Probe: [{ fault: 'hang' }] } })
    const hung = client.failure('Identity.Probe')
    await plugin.waitForCall('Probe')
    plugin.kill('SIGTERM')
    expect(await plugin.exit).to.deep.equal({ code: 0, signal: null })
    await hung
    expect(await readdir(directory)).to.deep.equal([])
  })

  it('ends with the code its script says after SIGTERM', async () => {
    const plugin = await start({ exitCode: 15 })
    plugin.kill('SIGTERM')
    expect(await plugin.exit).to.deep.equal({ code: 15, signal: null })
  })

  it('is closed while it is stopped, and while another plugin is on its path', async () => {
    const plugin = await start()
    plugin.kill('SIGSTOP')
    await rm(socketPath)
    await using other = await scriptedPlugin({ socketPath })
    await plugin.close()
    await plugin.close()
    await client.call('Identity.Probe')
    expect(other.calls).to.have.lengthOf(1)
  })

  it('that cannot start says why', async () => {
    await using other = await scriptedPlugin({ socketPath })
    const refused = await spawnScriptedPlugin({ socketPath }).catch((failure: unknown) => failure)
    expect(refused).to.include({ code: 'ERR_TASK_SPAWN' })
    expect((refused as Error).message).to.contain('live server')
    await client.call('Identity.Probe')
    expect(other.calls).to.have.lengthOf(1)
  })

  it('runs as a plain command, writes a line for each call without its request, and reads its script anew at every start', async () => {
    const script = join(directory, 'script.json')
    for (const version of ['1', '2']) {
      await writeFile(script, JSON.stringify({ version } satisfies PluginScript))
      const { command, env } = scriptedPluginCommand(script)
      const [program, ...parameters] = command
      const child = spawn(program, parameters, {
        env: { ...process.env, ...env, CSI_ENDPOINT: socketPath },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const exit = once(child, 'exit')
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
      expect((await lines.next()).value).to.equal(`the scripted plugin has started; its socket is ${socketPath}`)
      const secrets = { password: 'hunter2' }
      const other = new RawClient(socketPath)
      await other.call('Node.NodeStageVolume', { secrets })
      const line = String((await lines.next()).value)
      expect(JSON.parse(line)).to.include({ rpc: 'NodeStageVolume' })
      expect(line).not.to.contain('hunter2')
      expect(await other.call('Identity.GetPluginInfo')).to.include({ vendor_version: version })
      await other.close()
      child.kill('SIGTERM')
      expect(await exit).to.deep.equal([0, null])
    }
    await rm(script)
  })

  it('ends when its script is no JSON, and says so', () => {
    const { command } = scriptedPluginCommand()
    const [program, ...parameters] = command
    const env = { ...process.env, CSI_ENDPOINT: socketPath, PLUGSTREAM_SCRIPT: 'nonsense' }
    const { status: code, stderr } = spawnSync(program, parameters, { env, encoding: 'utf8' })
    expect(code).to.equal(1)
    expect(stderr).to.contain('JSON')
  })
})
