import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { RawClient } from '../lib/csi/server-client.js'
import { scriptedPlugin, type PluginScript, type ScriptedPlugin } from './index.js'

describe('a scripted plugin', () => {
  let directory: string
  let socketPath: string
  let client: RawClient
  const plugins: ScriptedPlugin[] = []

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
    const plugin = await scriptedPlugin({ socketPath, script })
    plugins.push(plugin)
    return plugin
  }

  it('is a monolith that is well, unless it is told otherwise', async () => {
    await start()
    expect(await client.call('Identity.GetPluginInfo')).to.include({
      name: 'scripted.plugstream.example',
      vendor_version: '1.0.0',
    })
    expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: true } })
    const { capabilities } = await client.call('Identity.GetPluginCapabilities')
    expect(capabilities).to.deep.equal([{ service: { type: 'CONTROLLER_SERVICE' }, type: 'service' }])
    expect(await client.call('Node.NodeGetInfo')).to.include({ node_id: 'node-1', accessible_topology: null })
    expect(await types('Node.NodeGetCapabilities')).to.deep.equal(['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'])
    const { volume } = await client.call('Controller.CreateVolume', {
      name: 'v1',
      capacity_range: { required_bytes: '7' },
    })
    expect(volume).to.include({ volume_id: 'v1', capacity_bytes: '7' })
    await client.call('Node.NodeStageVolume', { volume_id: 'v1' })
  })

  it('says what its script says, and from a change on what the change says', async () => {
    const plugin = await start({
      name: 'a.example',
      version: '2',
      nodeId: 'n',
      maxVolumes: 3,
      topology: { zone: 'z1' },
    })
    expect(await client.call('Identity.GetPluginInfo')).to.include({ name: 'a.example', vendor_version: '2' })
    expect(await client.call('Node.NodeGetInfo')).to.deep.equal({
      node_id: 'n',
      max_volumes_per_node: '3',
      accessible_topology: { segments: { zone: 'z1' } },
    })
    await plugin.change({ version: '3', ready: 'unset' })
    expect(await client.call('Identity.GetPluginInfo')).to.include({ name: 'a.example', vendor_version: '3' })
    expect(await client.call('Identity.Probe')).to.deep.equal({ ready: null })
    await plugin.change({ ready: false })
    expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: false } })
  })

  it('has capabilities nobody knows, by number', async () => {
    await start({ capabilities: { node: ['EXPAND_VOLUME', 4711], controller: [4712], plugin: [4713] } })
    expect(await types('Node.NodeGetCapabilities')).to.deep.equal(['EXPAND_VOLUME', 4711])
    expect(await types('Controller.ControllerGetCapabilities')).to.deep.equal([4712])
    const { capabilities } = await client.call('Identity.GetPluginCapabilities')
    expect(capabilities).to.deep.equal([{ service: { type: 4713 }, type: 'service' }])
  })

  it('has the services its script gives it, and no other', async () => {
    await start({ services: ['groupController'] })
    expect(await types('GroupController.GroupControllerGetCapabilities')).to.have.lengthOf(1)
    expect(await client.failure('Node.NodeGetInfo')).to.include({ code: status.UNIMPLEMENTED })
    expect(await client.failure('Controller.CreateVolume')).to.include({ code: status.UNIMPLEMENTED })
    expect(await client.call('Identity.GetPluginCapabilities')).to.deep.equal({ capabilities: [] })
  })

  it('answers the next calls as it is told, in order, then as before', async () => {
    const plugin = await start({
      replies: { NodeGetInfo: [{ response: { node_id: 'first' } }, { status: 'ABORTED' }] },
    })
    await plugin.reply(
      'NodeGetInfo',
      { status: 'UNAVAILABLE', message: 'later' },
      { delayMs: 1, response: { node_id: 'last' } },
    )
    expect(await client.call('Node.NodeGetInfo')).to.include({ node_id: 'first' })
    expect(await client.failure('Node.NodeGetInfo')).to.include({ code: status.ABORTED })
    expect(await client.failure('Node.NodeGetInfo')).to.include({ code: status.UNAVAILABLE, details: 'later' })
    expect(await client.call('Node.NodeGetInfo')).to.include({ node_id: 'last' })
    expect(await client.call('Node.NodeGetInfo')).to.include({ node_id: 'node-1' })
  })

  it('repeats a reply until it is told another', async () => {
    const plugin = await start({ replies: { Probe: [{ status: 'FAILED_PRECONDITION', repeat: true }] } })
    for (let call = 0; call < 3; call++) {
      expect(await client.failure('Identity.Probe')).to.include({ code: status.FAILED_PRECONDITION })
    }
    await plugin.change({ replies: {} })
    await client.call('Identity.Probe')
  })

  it('logs its calls in order, and is waited for without asking again and again', async () => {
    const plugin = await start({ replies: { NodeStageVolume: [{ fault: 'hang' }] } })
    const second = plugin.waitForCall('Probe', 2)
    const staged = plugin.waitForCall('NodeStageVolume')
    await client.call('Identity.Probe')
    const giveUp = new AbortController()
    const hung = client.failure('Node.NodeStageVolume', { volume_id: 'v9' }, giveUp.signal)
    expect((await staged).request).to.include({ volume_id: 'v9' })
    giveUp.abort()
    expect(await hung).to.include({ code: status.CANCELLED })
    await client.call('Identity.Probe')
    expect(await second).to.equal(plugin.calls[2])
    expect(plugin.calls.map(({ rpc }) => rpc)).to.deep.equal(['Probe', 'NodeStageVolume', 'Probe'])
    expect(await plugin.waitForCall('Probe')).to.equal(plugin.calls[0])
  })

  it('lets those who wait for a call go when they give up, and when it closes', async () => {
    const plugin = await start()
    const giveUp = new AbortController()
    const given = failureOf(plugin.waitForCall('Probe', 1, giveUp.signal))
    giveUp.abort()
    expect(await given).to.include({ code: 'ERR_ABORTED' })
    const late = AbortSignal.abort(new DOMException('', 'TimeoutError'))
    expect(await failureOf(plugin.waitForCall('Probe', 1, late))).to.include({ code: 'ERR_TIMEOUT' })
    const closed = failureOf(plugin.waitForCall('Probe'))
    await plugin.close()
    expect(await closed).to.include({ code: 'ERR_CLOSED' })
  })

  it('closes at once also while calls hang or are held back', async () => {
    const plugin = await start({ replies: { Probe: [{ fault: 'hang' }, { delayMs: 3_600_000 }] } })
    const hung = client.failure('Identity.Probe')
    await plugin.waitForCall('Probe', 1)
    const held = client.failure('Identity.Probe')
    await plugin.waitForCall('Probe', 2)
    await plugin.close()
    await hung
    await held
  })

  it('listens late: after a time, or when it is told', async () => {
    const plugin = await start({ listen: 'on-demand' })
    expect(await readdir(directory)).to.deep.equal([])
    await plugin.listen()
    await client.call('Identity.Probe')
    await plugin.close()
    const late = await start({ listen: { afterMs: 1 } })
    void client.call('Identity.Probe', {}, undefined, { waitForReady: true })
    await late.waitForCall('Probe')
  })

  it('that is closed before it listens never does', async () => {
    const plugin = await start({ listen: { afterMs: 3_600_000 } })
    await plugin.close()
    expect(await readdir(directory)).to.deep.equal([])
  })

  it('is mute: accepts, and never says a word', async () => {
    const plugin = await start({ mute: true })
    const socket = connected(socketPath)
    await once(socket, 'connect')
    let said = 0
    socket.on('data', (data) => (said += data.length)).write('hello?')
    const gone = closed(socket)
    await plugin.close()
    await gone
    expect(said).to.equal(0)
  })

  it('cuts connections off, also in the middle of a call, and takes new ones', async () => {
    const plugin = await start({ replies: { Probe: [{ fault: 'disconnect' }] } })
    expect(await client.failure('Identity.Probe')).to.include({ code: status.UNAVAILABLE })
    await client.call('Identity.Probe', {}, undefined, { waitForReady: true })
    const socket = connected(socketPath)
    await once(socket, 'connect')
    await client.call('Identity.Probe') // by now the other connection is accepted
    const gone = closed(socket)
    await plugin.disconnect()
    await gone
  })

  it('drops connections that are idle', async () => {
    await start({ idleConnectionMs: 1 })
    const socket = connected(socketPath)
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0')
    await closed(socket)
  })

  it('leaves its old connections to the old server when another one takes the path', async () => {
    const plugin = await start({ version: 'old' })
    await client.call('Identity.Probe')
    const { ino } = await stat(socketPath)
    await plugin.rebind({ version: 'new' })
    expect((await stat(socketPath)).ino).not.to.equal(ino)
    expect(await client.call('Identity.GetPluginInfo')).to.include({ vendor_version: 'old' })
    const other = new RawClient(socketPath)
    expect(await other.call('Identity.GetPluginInfo')).to.include({ vendor_version: 'new' })
    await other.close()
  })

  it('unlinks its socket and goes on, and listens again under a new one', async () => {
    const plugin = await start()
    await client.call('Identity.Probe')
    await plugin.unlinkSocket()
    expect(await readdir(directory)).to.deep.equal([])
    await client.call('Identity.Probe')
    await plugin.listen()
    const other = new RawClient(socketPath)
    await other.call('Identity.Probe')
    await other.close()
    expect(plugin.calls).to.have.lengthOf(3)
  })

  it('changes the mode of its socket, which stays the same socket', async () => {
    const plugin = await start()
    const before = await stat(socketPath)
    await plugin.chmodSocket(0o640)
    const after = await stat(socketPath)
    expect(after.mode & 0o777).to.equal(0o640)
    expect(after.ino).to.equal(before.ino)
  })

  it('works on a volume also where its caller has left, and answers ABORTED about that one meanwhile', async () => {
    const ended: string[] = []
    const plugin = await scriptedPlugin({
      socketPath,
      script: { locksVolumes: true, replies: { NodePublishVolume: [{ fault: 'hang' }] } },
      onEnd: ({ rpc }) => ended.push(rpc),
    })
    plugins.push(plugin)
    const caller = new AbortController()
    const failed = client.failure('Node.NodePublishVolume', { volume_id: 'v1' }, caller.signal)
    await plugin.waitForCall('NodePublishVolume')
    expect((await client.failure('Node.NodeStageVolume', { volume_id: 'v1' })).code).to.equal(status.ABORTED)
    caller.abort()
    expect((await failed).code).to.equal(status.CANCELLED)
    expect((await client.failure('Node.NodeUnpublishVolume', { volume_id: 'v1' })).code).to.equal(status.ABORTED)
    await client.call('Node.NodeUnpublishVolume', { volume_id: 'v2' })
    expect(ended).to.have.members([
      'NodeStageVolume',
      'NodePublishVolume',
      'NodeUnpublishVolume',
      'NodeUnpublishVolume',
    ])
  })

  it('cannot exit, as it is no program of its own', async () => {
    await start({ replies: { Probe: [{ fault: { exit: 1 } }] } })
    const { code, details } = await client.failure('Identity.Probe')
    expect(code).to.equal(status.INTERNAL)
    expect(details).to.contain('program of its own')
  })

  async function types(rpc: Parameters<RawClient['call']>[0]): Promise<unknown[]> {
    const { capabilities } = (await client.call(rpc)) as { capabilities: { rpc: { type: unknown } }[] }
    return capabilities.map((capability) => capability.rpc.type)
  }
})

function connected(socketPath: string): Socket {
  const socket = connect({ path: socketPath })
  socket.on('error', () => undefined)
  return socket.resume()
}

/** With an error or without. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve))
}

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (failure: unknown) => failure,
  )
}
