import { once } from 'node:events'
import { createServer as createHttp2Server } from 'node:http2'
import { status, type ServerWritableStream } from '@grpc/grpc-js'
import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import type { GrpcChannel } from '../../../lib/grpc/channel.js'
import { grpcKind } from '../../../lib/grpc/kind.js'
import type { ProbeAnswer } from '../../../lib/plugin/kind.js'
import type { PluginTask } from '../../../lib/task/task.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { Scratch } from '../../support/sockets.js'
import { servePlugin, serveRaw } from '../csi/plugin-server.js'
import { serveHealth, type HealthAnswers } from './health-server.js'

const signal = new AbortController().signal

describe('the gRPC kind', () => {
  let scratch: Scratch
  let socketPath: string
  let opened: GrpcChannel[]
  let served: { close(): Promise<void> }[]
  beforeEach(() => {
    scratch = new Scratch()
    socketPath = scratch.file('grpc.sock')
    opened = []
    served = []
  })
  afterEach(async () => {
    await Promise.all(opened.map((channel) => channel.close()))
    await Promise.all(served.map((server) => server.close()))
    scratch[Symbol.dispose]()
  })

  function open(service?: string): GrpcChannel {
    const channel = grpcKind().open(socketPath, service === undefined ? {} : { service })
    opened.push(channel)
    return channel
  }
  async function serve(answers: HealthAnswers) {
    const server = await serveHealth(socketPath, answers)
    served.push(server)
    return server
  }

  describe('settings', () => {
    const task = (plugin: object | undefined): PluginTask => ({
      allocId: 'a1',
      taskName: 't',
      isolation: 'none',
      ...(plugin && { plugin: plugin as NonNullable<PluginTask['plugin']> }),
    })
    const configured = (plugin?: object) => grpcKind().configure(task(plugin))

    it('have a default each but for the id', () => {
      expect(configured({ kind: 'grpc', id: 'web' })).to.deep.equal({
        id: 'web',
        types: ['grpc'],
        overlaps: true,
        healthTimeoutMs: 30_000,
        initTimeoutMs: 300_000,
        socketName: 'grpc.sock',
        mountDir: '/grpc',
        endpointVariable: 'GRPC_ENDPOINT',
        identity: {},
      })
    })

    it('are taken as they are given', () => {
      const given = { service: 'acme.Web', provider: 'acme', version: '1.2', mountDir: '/run//web/', socketName: 's' }
      const config = configured({ kind: 'grpc', id: 'web', ...given, healthTimeoutMs: 5, initTimeoutMs: 6 })
      expect(config).to.deep.include({
        options: { service: 'acme.Web' },
        identity: { provider: 'acme', version: '1.2' },
        mountDir: '/run/web',
        socketName: 's',
        healthTimeoutMs: 5,
        initTimeoutMs: 6,
      })
      expect(config).not.to.have.property('volumeDir')
    })

    const refused: [string, object | undefined][] = [
      ['plugin', undefined],
      ['plugin.kind', { kind: 'csi', id: 'web' }],
      ['plugin.id', { kind: 'grpc', id: '' }],
      ['plugin.id', { kind: 'grpc' }],
      ['plugin.service', { kind: 'grpc', id: 'web', service: 5 }],
      ['plugin.provider', { kind: 'grpc', id: 'web', provider: null }],
      ['plugin.version', { kind: 'grpc', id: 'web', version: 2 }],
      ['plugin.mountDir', { kind: 'grpc', id: 'web', mountDir: 'run' }],
      ['plugin.socketName', { kind: 'grpc', id: 'web', socketName: '../s' }],
      ['plugin.socketName', { kind: 'grpc', id: 'web', socketName: '..' }],
      ['plugin.healthTimeoutMs', { kind: 'grpc', id: 'web', healthTimeoutMs: '30s' }],
      ['plugin.initTimeoutMs', { kind: 'grpc', id: 'web', initTimeoutMs: 0 }],
      ['plugin.sevice', { kind: 'grpc', id: 'web', sevice: 'misspelt' }],
    ]
    for (const [field, plugin] of refused) {
      it(`refuse ${JSON.stringify(plugin)} naming ${field}`, () => {
        expect(() => configured(plugin))
          .to.throw(PlugstreamError)
          .with.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
      })
    }
  })

  describe('probe', () => {
    const rows: [string, HealthAnswers, ProbeAnswer['kind'], RegExp][] = [
      ['SERVING', { check: () => ({ status: 'SERVING' }) }, 'ready', /^$/],
      ['NOT_SERVING', { check: () => ({ status: 'NOT_SERVING' }) }, 'not-ready', /acme.Web is NOT_SERVING/],
      ['UNKNOWN, which is the default', { check: () => ({ status: 'UNKNOWN' }) }, 'not-ready', /does not know yet/],
      ['SERVICE_UNKNOWN', { check: () => ({ status: 'SERVICE_UNKNOWN' }) }, 'failed', /does not know of .*acme.Web/],
      [
        'NOT_FOUND',
        { check: () => ({ code: status.NOT_FOUND, details: '' }) },
        'failed',
        /does not know of .*acme.Web/,
      ],
      ['a status that there is not', { check: () => ({ status: 7 }) }, 'failed', /status 7/],
      ['INTERNAL', { check: () => ({ code: status.INTERNAL, details: 'no db' }) }, 'failed', /INTERNAL: no db/],
      [
        'UNAVAILABLE of its own',
        { check: () => ({ code: status.UNAVAILABLE, details: 'x' }) },
        'failed',
        /UNAVAILABLE/,
      ],
      ['CANCELLED of its own', { check: () => ({ code: status.CANCELLED, details: 'x' }) }, 'failed', /CANCELLED/],
      ['a service without Check', {}, 'not-served', /not grpc.health.v1/],
    ]
    for (const [what, answers, kind, description] of rows) {
      it(`is ${kind} for ${what}`, async () => {
        const server = await serve(answers)
        const channel = open('acme.Web')
        const answer = await channel.probe(signal)
        expect(answer.kind).to.equal(kind)
        expect(answer.kind === 'ready' ? '' : answer.description).to.match(description)
        expect(server.checked).to.deep.equal(['acme.Web'])
        expect(channel.answered, 'a probe is no answered call').to.equal(0)
      })
    }

    it('asks for the server as a whole where no service is named', async () => {
      const server = await serve({ check: () => ({ status: 'SERVING' }) })
      expect(await open().probe(signal)).to.deep.equal({ kind: 'ready' })
      expect(server.checked).to.deep.equal([''])
    })

    it('is not-served for a gRPC server of something else, for HTTP/2 of something else, and for no HTTP/2 at all', async () => {
      served.push(await servePlugin(socketPath, { Probe: () => ({}) }))
      expect((await open().probe(signal)).kind).to.equal('not-served')
      await served.pop()?.close()
      const http2 = createHttp2Server((_, response) => response.writeHead(404).end()).listen(socketPath)
      await once(http2, 'listening')
      const channel = open()
      expect((await channel.probe(signal)).kind).to.equal('not-served')
      await channel.close()
      await new Promise((resolve) => http2.close(resolve))
      served.push(await serveRaw(socketPath, (socket) => socket.write('SSH-2.0-OpenSSH_9.2p1\r\n')))
      expect((await open().probe(signal)).kind).to.equal('not-served')
    })

    it('is unreachable where nobody is, where the connection is lost on the way, and after close', async () => {
      const channel = open()
      expect((await channel.probe(signal)).kind).to.equal('unreachable')
      let arrived = (): void => undefined
      const asked = new Promise<void>((resolve) => (arrived = resolve))
      const check = (): Promise<never> => (arrived(), new Promise(() => undefined))
      const server = await serve({ check })
      const lost = open().probe(signal)
      await asked
      server.drop()
      expect((await lost).kind).to.equal('unreachable')
      await channel.close()
      expect((await channel.probe(signal)).kind).to.equal('unreachable')
    })

    it('ends with its signal where nobody answers', async () => {
      await serve({ check: () => new Promise(() => undefined) })
      const failure: unknown = await open()
        .probe(AbortSignal.timeout(20))
        .catch((thrown: unknown) => thrown)
      expect(failure).to.be.instanceOf(PlugstreamError).with.property('code', 'ERR_TIMEOUT')
    })
  })

  describe('watch', () => {
    type Stream = ServerWritableStream<{ service: string }, { status: string | number }>

    /** A server whose watches are at hand, one after the other. */
    async function watched() {
      const streams: Stream[] = []
      const heard: (() => void)[] = []
      const server = await serve({
        check: () => ({ status: 'SERVING' }),
        watch: (stream) => {
          streams.push(stream)
          stream.write({ status: 'SERVING' })
          for (const hear of heard.splice(0)) hear()
        },
      })
      return { server, streams, opened: () => new Promise<void>((resolve) => heard.push(resolve)) }
    }
    const caught = (work: Promise<unknown>): Promise<unknown> => work.catch((thrown: unknown) => thrown)

    it('tells each status that the server tells, of the service that was named', async () => {
      const { streams } = await watched()
      const told = open('acme.Web').watch(signal)
      expect(await told.next()).to.deep.equal({ value: undefined, done: false })
      expect(streams[0]?.request).to.deep.equal({ service: 'acme.Web' })
      const next = told.next()
      streams[0]?.write({ status: 'NOT_SERVING' })
      expect((await next).done).to.equal(false)
    })

    it('ends where the server has no Watch', async () => {
      await serve({ check: () => ({ status: 'SERVING' }) })
      expect(await open().watch(signal).next()).to.deep.equal({ value: undefined, done: true })
    })

    it('fails, to be begun again, where the server ends it, where the connection is lost, and where there is none', async () => {
      const { server, streams } = await watched()
      const channel = open()
      for (const end of [() => streams.at(-1)?.end(), () => server.drop()]) {
        const told = channel.watch(signal)
        await told.next()
        const failure = caught(told.next())
        end()
        expect(await failure).to.include({ code: 'ERR_PLUGIN_NOT_READY', retryable: true })
      }
      await server.close()
      served = []
      expect(await caught(channel.watch(signal).next())).to.include({ code: 'ERR_PLUGIN_NOT_READY' })
    })

    it('ends at the server when its reader leaves, and when the channel is closed, which it does not keep from closing', async () => {
      const { server, streams } = await watched()
      const leaving = new AbortController()
      const left = open().watch(leaving.signal)
      await left.next()
      const cancelled = once(streams[0]!, 'cancelled')
      const last = caught(left.next())
      leaving.abort()
      await Promise.all([cancelled, last])

      const channel = open()
      const told = channel.watch(signal)
      await told.next()
      const failure = caught(told.next())
      await channel.close()
      expect(await failure).to.be.instanceOf(PlugstreamError)
      expect(await channel.watch(signal).next()).to.deep.equal({ value: undefined, done: true })
      await opened[0]?.close()
      await server.quiet()
    })
  })

  it('says nothing of itself, and no capabilities', async () => {
    expect(await open().identify()).to.deep.equal({})
    expect(await open().fingerprint()).to.deep.equal({ requiresControllerPlugin: false, requiresTopologies: false })
  })

  it('leaves no connection and no handle, watched or not', async () => {
    const before = await inUse()
    const server = await serve({
      check: () => ({ status: 'SERVING' }),
      watch: (stream) => stream.write({ status: 'SERVING' }),
    })
    const [one, other] = [open(), open()]
    await one.probe(signal)
    const told = other.watch(signal)
    await told.next()
    await Promise.all([one.close(), other.close()])
    await server.quiet()
    await server.close()
    served = []
    expect(await leftSince(before)).to.deep.equal([])
  })
})
