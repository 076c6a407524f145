import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp2Server } from 'node:http2'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Server, ServerCredentials, status } from '@grpc/grpc-js'
import { expect } from 'chai'
import type { CsiChannel } from '../../../lib/csi/channel.js'
import { csiKind } from '../../../lib/csi/kind.js'
import { healthProto } from '../../../lib/grpc/proto.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { PluginChannel, ProbeAnswer } from '../../../lib/plugin/kind.js'
import { servePlugin, serveRaw, type Handler } from './plugin-server.js'

const signal = new AbortController().signal
const fails =
  (code: status, details = 'because'): Handler =>
  () =>
    Promise.reject(Object.assign(new Error(details), { code, details }))
const never: Handler = () => new Promise(() => {})
const info: Handler = () => ({ name: 'csi.example.org', vendor_version: 'v1.2.3' })

describe('the CSI kind', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
  after(() => rmSync(directory, { recursive: true }))

  let socketPath: string
  let count = 0
  let opened: PluginChannel[] = []
  let served: { close(): Promise<void> }[] = []
  beforeEach(() => (socketPath = join(directory, `${++count}.sock`)))
  afterEach(async () => {
    await Promise.all(opened.map((channel) => channel.close()))
    await Promise.all(served.map((server) => server.close()))
    opened = []
    served = []
  })

  function open(init?: { rpcTimeoutMs: number }): CsiChannel {
    const channel = csiKind(init).open(socketPath)
    opened.push(channel)
    return channel
  }
  async function serve(handlers: Readonly<Record<string, Handler>>) {
    const server = await servePlugin(socketPath, handlers)
    served.push(server)
    return server
  }

  describe('probe', () => {
    const rows: [string, Readonly<Record<string, Handler>>, ProbeAnswer['kind'], RegExp][] = [
      ['ready not set', { Probe: () => ({}) }, 'ready', /^$/],
      ['ready null', { Probe: () => ({ ready: null }) }, 'ready', /^$/],
      ['ready true', { Probe: () => ({ ready: { value: true } }) }, 'ready', /^$/],
      ['ready false', { Probe: () => ({ ready: { value: false } }) }, 'not-ready', /not ready yet/],
      ['ready set without a value, which is false', { Probe: () => ({ ready: {} }) }, 'not-ready', /not ready yet/],
      [
        'FAILED_PRECONDITION',
        { Probe: fails(status.FAILED_PRECONDITION, 'no mount') },
        'failed',
        /FAILED_PRECONDITION: no mount/,
      ],
      ['INTERNAL', { Probe: fails(status.INTERNAL) }, 'failed', /INTERNAL/],
      ['an error that is no status', { Probe: () => Promise.reject(new Error('boom')) }, 'failed', /UNKNOWN: boom/],
      [
        'UNAVAILABLE of its own',
        { Probe: fails(status.UNAVAILABLE, 'no storage') },
        'failed',
        /UNAVAILABLE: no storage/,
      ],
      ['CANCELLED of its own', { Probe: fails(status.CANCELLED) }, 'failed', /CANCELLED/],
      ['DEADLINE_EXCEEDED of its own', { Probe: fails(status.DEADLINE_EXCEEDED) }, 'failed', /DEADLINE_EXCEEDED/],
      ['no Probe, but a name', { GetPluginInfo: info }, 'ready', /^$/],
      ['UNIMPLEMENTED and a name', { Probe: fails(status.UNIMPLEMENTED), GetPluginInfo: info }, 'ready', /^$/],
      [
        'no Probe, and an error for a name',
        { GetPluginInfo: fails(status.INTERNAL) },
        'failed',
        /GetPluginInfo.*INTERNAL/,
      ],
      ['neither Probe nor a name', { NodeGetInfo: never }, 'not-csi', /not CSI version 1/],
    ]
    for (const [what, handlers, kind, description] of rows) {
      it(`is ${kind} for ${what}`, async () => {
        await serve(handlers)
        const channel = open()
        const answer = await channel.probe(signal)
        expect(answer.kind).to.equal(kind)
        expect(answer.kind === 'ready' ? '' : answer.description).to.match(description)
        expect(channel.answered, 'a probe is no answered call').to.equal(0)
      })
    }

    it('is not-csi for a gRPC server of something else', async () => {
      const server = new Server()
      server.addService(healthProto().Health.service, {})
      served.push({ close: async () => server.forceShutdown() })
      await new Promise<void>((resolve, reject) =>
        server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
          error ? reject(error) : resolve(),
        ),
      )
      expect((await open().probe(signal)).kind).to.equal('not-csi')
    })

    it('is not-csi for an HTTP/2 server that knows no such path', async () => {
      const server = createHttp2Server((_, response) => response.writeHead(404).end())
      server.listen(socketPath)
      await once(server, 'listening')
      served.push({ close: () => new Promise((resolve) => server.close(() => resolve())) })
      const channel = open()
      expect((await channel.probe(signal)).kind).to.equal('not-csi')
    })

    const garbage: [string, (socket: Socket) => void][] = [
      ['a banner', (socket) => socket.write('SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n')],
      ['HTTP/1.1', (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
      ['noise', (socket) => socket.write(Buffer.alloc(4096, 0xa5))],
      ['zeros', (socket) => socket.write(Buffer.alloc(4096))],
    ]
    for (const [what, speak] of garbage) {
      it(`is not-csi for a peer that speaks ${what}`, async () => {
        served.push(await serveRaw(socketPath, speak))
        const answer = await open().probe(signal)
        expect(answer).to.deep.equal({ kind: 'not-csi', description: 'Probe failed: UNAVAILABLE: Protocol error' })
      })
    }

    it('is unreachable where the peer hangs up, at once or during the probe', async () => {
      const hangsUp = await serveRaw(socketPath, (socket) => socket.destroy())
      expect((await open().probe(signal)).kind).to.equal('unreachable')
      await hangsUp.close()
      const server = await serve({ Probe: (_, call) => (setImmediate(server.drop), never({}, call)) })
      expect((await open().probe(signal)).kind).to.equal('unreachable')
    })

    it('is unreachable for no file, a regular file, and a channel that is closed', async () => {
      expect(await open().probe(signal)).to.include({ kind: 'unreachable' })
      writeFileSync(socketPath, '')
      const channel = open()
      expect(await channel.probe(signal)).to.include({ kind: 'unreachable' })
      await channel.close()
      expect(await channel.probe(signal)).to.include({ kind: 'unreachable' })
    })

    it('ends with its signal where nobody answers: a plugin that hangs, a peer that is mute', async () => {
      const server = await serve({ Probe: never })
      expect(await codeOf(open().probe(AbortSignal.timeout(50)))).to.equal('ERR_TIMEOUT')
      await server.close()
      served = [await serveRaw(socketPath, () => {})]
      expect(await codeOf(open().probe(AbortSignal.timeout(50)))).to.equal('ERR_TIMEOUT')
      expect(await codeOf(open().probe(AbortSignal.abort()))).to.equal('ERR_ABORTED')
    })

    it('waits as long as its signal says, and not as other calls do', async () => {
      let ready = (): void => {}
      const opened = new Promise<void>((resolve) => (ready = resolve))
      await serve({ Probe: () => opened.then(() => ({})), GetPluginInfo: never })
      const channel = open({ rpcTimeoutMs: 20 })
      const answer = channel.probe(signal)
      await codeOf(channel.call('GetPluginInfo')) // begun later, and overdue by now
      ready()
      expect(await answer).to.deep.equal({ kind: 'ready' })
    })

    it('answers truly again after the plugin came back', async () => {
      const first = await serve({ Probe: () => ({}) })
      const channel = open()
      expect((await channel.probe(signal)).kind).to.equal('ready')
      const lost = new Promise<void>((resolve) => channel.onLink((state) => state === 'lost' && resolve()))
      await first.close()
      await lost
      expect((await channel.probe(signal)).kind).to.equal('unreachable')
      await serve({ Probe: () => ({ ready: { value: false } }) })
      let answer = await channel.probe(signal)
      while (answer.kind === 'unreachable') answer = await channel.probe(signal) // until the backoff of 20 ms has passed
      expect(answer.kind).to.equal('not-ready')
    })
  })

  describe('identify', () => {
    it('reads name and version', async () => {
      await serve({ GetPluginInfo: info })
      const channel = open()
      expect(await channel.identify(signal)).to.deep.equal({ provider: 'csi.example.org', version: 'v1.2.3' })
      expect(channel.answered).to.equal(1)
    })

    it('takes a name without a dot, and no version', async () => {
      await serve({ GetPluginInfo: () => ({ name: 'seaweedfs-csi-driver' }) })
      expect(await open().identify(signal)).to.deep.equal({ provider: 'seaweedfs-csi-driver', version: '' })
    })

    const rows: [string, Readonly<Record<string, Handler>>, string, boolean][] = [
      ['without a name', { GetPluginInfo: () => ({ vendor_version: '1' }) }, 'ERR_CSI_PROTOCOL', false],
      ['with a blank name', { GetPluginInfo: () => ({ name: ' ' }) }, 'ERR_CSI_PROTOCOL', false],
      ['that does not know the call', { Probe: () => ({}) }, 'ERR_CSI_UNSUPPORTED', false],
      ['that is not configured yet', { GetPluginInfo: fails(status.UNAVAILABLE) }, 'ERR_CSI_RPC', true],
    ]
    for (const [what, handlers, code, retryable] of rows) {
      it(`is ${code} for a plugin ${what}`, async () => {
        await serve(handlers)
        const failure = await caught(open().identify(signal))
        expect(failure).to.include({ code, retryable })
      })
    }
  })

  describe('fingerprint', () => {
    const services = (...types: unknown[]): Handler => {
      return () => ({ capabilities: types.map((type) => (type === null ? {} : { service: { type } })) })
    }
    const rpcs = (...types: unknown[]): Handler => {
      return () => ({ capabilities: types.map((type) => (type === null ? {} : { rpc: { type } })) })
    }
    const node = (answer: object): Readonly<Record<string, Handler>> => ({
      GetPluginCapabilities: services(),
      NodeGetCapabilities: rpcs(),
      NodeGetInfo: () => ({ node_id: 'n', ...answer }),
    })

    it('reads a controller without asking anything of the node', async () => {
      const asked: string[] = []
      await serve({
        GetPluginCapabilities: services('CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'),
        ControllerGetCapabilities: rpcs('PUBLISH_UNPUBLISH_VOLUME', 'CREATE_DELETE_VOLUME'),
        NodeGetCapabilities: () => (asked.push('NodeGetCapabilities'), {}),
        NodeGetInfo: () => (asked.push('NodeGetInfo'), {}),
      })
      expect(await open().fingerprint('csi-controller', signal)).to.deep.equal({
        requiresControllerPlugin: true,
        requiresTopologies: true,
        controller: { names: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'], unknown: [] },
      })
      expect(asked).to.deep.equal([])
    })

    it('reads a node without asking anything of the controller', async () => {
      const asked: string[] = []
      await serve({
        ...node({ max_volumes_per_node: 16, accessible_topology: { segments: { zone: 'z', region: 'r', rack: '' } } }),
        NodeGetCapabilities: rpcs('STAGE_UNSTAGE_VOLUME'),
        ControllerGetCapabilities: () => (asked.push('ControllerGetCapabilities'), {}),
      })
      const channel = open()
      const facts = await channel.fingerprint('csi-node', signal)
      expect(facts).to.deep.equal({
        requiresControllerPlugin: false,
        requiresTopologies: false,
        node: {
          names: ['STAGE_UNSTAGE_VOLUME'],
          unknown: [],
          id: 'n',
          maxVolumes: 16,
          topology: { rack: '', region: 'r', zone: 'z' },
        },
      })
      expect(Object.keys(facts.node!.topology!), 'in order, so that the text of the facts is stable').to.deep.equal([
        'rack',
        'region',
        'zone',
      ])
      expect(asked).to.deep.equal([])
      expect(channel.answered).to.equal(3)
    })

    it('keeps numbers that have no name, folds what comes twice, drops UNKNOWN and what is empty', async () => {
      await serve({
        GetPluginCapabilities: services(null, 0, 99, 'CONTROLLER_SERVICE', 'CONTROLLER_SERVICE'),
        NodeGetCapabilities: rpcs('GET_VOLUME_STATS', 99, null, 0, 'GET_VOLUME_STATS', 77, 'EXPAND_VOLUME', 99),
        NodeGetInfo: () => ({ node_id: 'n' }),
      })
      const facts = await open().fingerprint('csi-node', signal)
      expect(facts.requiresControllerPlugin).to.equal(true)
      expect(facts.node).to.deep.equal({
        names: ['EXPAND_VOLUME', 'GET_VOLUME_STATS'],
        unknown: [77, 99],
        id: 'n',
      })
    })

    it('reads the capabilities that version 1.13 removed, since drivers still send them', async () => {
      await serve({ ...node({}), NodeGetCapabilities: rpcs('VOLUME_CONDITION') })
      expect((await open().fingerprint('csi-node', signal)).node?.names).to.deep.equal(['VOLUME_CONDITION'])
    })

    const limits: [string, number | undefined][] = [
      ['0', undefined],
      ['-1', undefined],
      ['9223372036854775807', undefined],
      ['1', 1],
      ['9007199254740991', 9007199254740991],
    ]
    for (const [sent, read] of limits) {
      it(`takes a limit of ${sent} volumes for ${read ?? 'none'}`, async () => {
        await serve(node({ max_volumes_per_node: sent }))
        const facts = await open().fingerprint('csi-node', signal)
        expect(facts.node).to.deep.equal({ names: [], unknown: [], id: 'n', ...(read && { maxVolumes: read }) })
      })
    }

    for (const topology of [null, {}, { segments: {} }]) {
      it(`takes a topology of ${JSON.stringify(topology)} for none`, async () => {
        await serve(node({ accessible_topology: topology }))
        expect((await open().fingerprint('csi-node', signal)).node).to.not.have.property('topology')
      })
    }

    it('fails for a node without an id', async () => {
      await serve(node({ node_id: '' }))
      const failure = await caught(open().fingerprint('csi-node', signal))
      expect(failure.code).to.equal('ERR_CSI_PROTOCOL')
    })

    it('fails with the call that failed, and gives up the others', async () => {
      const cancelled: string[] = []
      let arrived = 0
      let both!: () => void
      const waiting = new Promise<void>((resolve) => (both = resolve))
      let told!: () => void
      const all = new Promise<void>((resolve) => (told = resolve))
      const hang =
        (rpc: string): Handler =>
        (_, call) => {
          if (++arrived === 2) both()
          call.once('cancelled', () => {
            if (cancelled.push(rpc) === 2) told()
          })
          return never({}, call)
        }
      await serve({
        GetPluginCapabilities: hang('GetPluginCapabilities'),
        NodeGetCapabilities: hang('NodeGetCapabilities'),
        NodeGetInfo: async (...call) => (await waiting, fails(status.INTERNAL, 'no metadata')(...call)),
      })
      const failure = await caught(open().fingerprint('csi-node', signal))
      expect(failure.details).to.include({ rpc: 'NodeGetInfo', grpcCode: 'INTERNAL' })
      await all
      expect(cancelled).to.have.members(['GetPluginCapabilities', 'NodeGetCapabilities'])
    })

    it('ends with its signal', async () => {
      await serve({ ...node({}), NodeGetInfo: never })
      expect(await codeOf(open().fingerprint('csi-node', AbortSignal.timeout(50)))).to.equal('ERR_TIMEOUT')
    })

    it('refuses a type of another kind', async () => {
      expect(await codeOf(open().fingerprint('toy', signal))).to.equal('ERR_OPTION_INVALID')
    })
  })

  describe('client', () => {
    it('has a method for each call, and makes it over the channel that is right then', async () => {
      await serve({ NodeGetInfo: () => ({ node_id: 'first' }) })
      const first = open()
      socketPath = join(directory, `${++count}.sock`)
      await serve({ NodeGetInfo: () => ({ node_id: 'second' }) })
      const second = open()
      let current = first
      const client = csiKind().client(() => current)
      expect((await client.nodeGetInfo()).nodeId).to.equal('first')
      current = second
      expect((await client.call('NodeGetInfo')).node_id).to.equal('second')
      const { nodeGetInfo } = client
      expect((await nodeGetInfo({}, { timeoutMs: 5_000 })).nodeId).to.equal('second')
      expect(Object.keys(client))
        .to.have.length(36 + 3 + 2)
        .and.include('createVolumeGroupSnapshot')
    })

    it('rejects with what picking a channel throws', async () => {
      const gone = new PlugstreamError('ERR_PLUGIN_UNKNOWN', 'there is none')
      const client = csiKind().client(() => {
        throw gone
      })
      expect(await caught(client.nodeGetInfo())).to.equal(gone)
    })

    it('refuses the channel of another kind', async () => {
      const client = csiKind().client(() => ({}) as PluginChannel)
      expect(await codeOf(client.nodeGetInfo())).to.equal('ERR_USAGE')
    })
  })
})

async function caught(promise: Promise<unknown>): Promise<PlugstreamError> {
  const failure: unknown = await promise.then(
    (value) => `resolved to ${JSON.stringify(value)}`,
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  return failure as PlugstreamError
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await caught(promise)).code
}
