import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import type { CsiChannel } from '../../../lib/csi/channel.js'
import { csiKind } from '../../../lib/csi/kind.js'
import { operations } from '../../../lib/csi/operations.js'
import type { CsiRpc } from '../../../lib/csi/rpcs.js'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { LinkState } from '../../../lib/plugin/kind.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { servePlugin, serveRaw, type Handler } from './plugin-server.js'

const never: Handler = () => new Promise(() => {})
const info: Handler = () => ({ name: 'csi.example.org', vendor_version: '1' })

describe('CsiChannel', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
  after(() => rmSync(directory, { recursive: true }))

  let socketPath: string
  let count = 0
  let opened: CsiChannel[] = []
  let served: { close(): Promise<void> }[] = []
  beforeEach(() => (socketPath = join(directory, `${++count}.sock`)))
  afterEach(async () => {
    await Promise.all(opened.map((channel) => channel.close()))
    await Promise.all(served.map((server) => server.close()))
    opened = []
    served = []
  })

  function open(rpcTimeoutMs?: number): CsiChannel {
    const channel = csiKind({ ...(rpcTimeoutMs && { rpcTimeoutMs }) }).open(socketPath)
    opened.push(channel)
    return channel
  }
  async function serve(handlers: Readonly<Record<string, Handler>>) {
    const server = await servePlugin(socketPath, handlers)
    served.push(server)
    return server
  }
  async function serveMute() {
    const server = await serveRaw(socketPath, () => {})
    served.push(server)
    return server
  }

  describe('link', () => {
    it('dials nothing before the first call, and connects with it', async () => {
      const server = await serve({ GetPluginInfo: info })
      const channel = open()
      const states = record(channel)
      await turns(3)
      expect(server.sockets.size).to.equal(0)
      await channel.call('GetPluginInfo')
      expect(states).to.deep.equal(['idle', 'connecting', 'connected'])
      expect(server.sockets.size).to.equal(1)
    })

    it('is lost at once when the connection ends, and connects again with the next call', async () => {
      const server = await serve({ GetPluginInfo: info })
      const channel = open()
      await channel.call('GetPluginInfo')
      const states = record(channel)
      const lost = reaches(channel, 'lost')
      server.drop()
      await lost
      expect(states).to.deep.equal(['connected', 'lost'])
      await channel.call('GetPluginInfo')
      expect(states).to.deep.equal(['connected', 'lost', 'connecting', 'connected'])
    })

    it('is lost when the process behind it is killed', async () => {
      const program = `const s = require('node:http2').createServer().listen(${JSON.stringify(socketPath)}, () => console.log('up'))`
      const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
      await once(child.stdout, 'data')
      const channel = open()
      const connected = reaches(channel, 'connected')
      const call = caught(channel.call('Probe'))
      await connected
      const lost = reaches(channel, 'lost')
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await Promise.all([lost, exited])
      expect((await call).code).to.equal('ERR_CSI_RPC')
    })

    it('is idle again, and not lost, where no connection can be had', async () => {
      const channel = open()
      const states = record(channel)
      await caught(channel.call('GetPluginInfo'))
      expect(states).to.deep.equal(['idle', 'connecting', 'idle'])
    })

    it('lets a listener call when it hears of a loss', async () => {
      const server = await serve({ GetPluginInfo: info })
      const channel = open()
      await channel.call('GetPluginInfo')
      const again = new Promise((resolve) => {
        channel.onLink((state) => state === 'lost' && resolve(channel.call('GetPluginInfo')))
      })
      server.drop()
      expect(await again).to.include({ name: 'csi.example.org' })
    })

    it('tells nothing more to a listener that was called off, nor after close', async () => {
      const server = await serve({ GetPluginInfo: info })
      const channel = open()
      await channel.call('GetPluginInfo')
      const heard: LinkState[] = []
      const callOff = channel.onLink((state) => heard.push(state))
      const kept = record(channel)
      callOff()
      const lost = reaches(channel, 'lost')
      server.drop()
      await lost
      expect(heard).to.deep.equal(['connected'])
      await channel.call('GetPluginInfo')
      const before = [...kept]
      await channel.close()
      expect(kept).to.deep.equal(before)
    })

    it('refuses a path that is too long for a socket, and takes the longest that is not', () => {
      const longest = `/${'a'.repeat(socketPathLimitBytes - 1)}`
      expect(() => csiKind().open(`${longest}a`))
        .to.throw(PlugstreamError, `${socketPathLimitBytes}`)
        .with.property('code', 'ERR_SOCKET_PATH')
      opened.push(csiKind().open(longest))
    })
  })

  describe('call', () => {
    it('reaches every call of CSI that has one answer', async () => {
      const rpcs = Object.keys(operations).filter((rpc) => !rpc.startsWith('GetMetadata')) as CsiRpc[]
      const asked: string[] = []
      await serve(Object.fromEntries(rpcs.map((rpc) => [rpc, () => (asked.push(rpc), {})])))
      const channel = open()
      for (const rpc of rpcs) await channel.call(rpc)
      expect(asked).to.deep.equal(rpcs)
      expect(rpcs).to.have.length(34)
      expect(channel.answered).to.equal(34)
    })

    it('carries request and response', async () => {
      let asked: object | undefined
      await serve({
        NodeExpandVolume: (request) => {
          asked = request
          return { capacity_bytes: '9223372036854775807' }
        },
      })
      const request = { volume_id: 'v', capacity_range: { required_bytes: '5' } }
      const answer = await open().call('NodeExpandVolume', request)
      expect(answer).to.deep.equal({ capacity_bytes: '9223372036854775807' })
      expect(asked).to.deep.include({ volume_id: 'v', capacity_range: { required_bytes: '5', limit_bytes: '0' } })
    })

    it('calls the server localhost, and never by its path', async () => {
      let host: string | undefined
      await serve({ GetPluginInfo: (_, call) => ((host = call.getHost()), info({}, call)) })
      await open().call('GetPluginInfo')
      expect(host).to.equal('localhost')
    })

    it('takes an answer of more than the 4 MiB of gRPC', async () => {
      const manifest = { a: 'x'.repeat(8 * 1024 * 1024) }
      await serve({ GetPluginInfo: () => ({ name: 'n', manifest }) })
      expect((await open().call('GetPluginInfo')).manifest['a']).to.have.length(8 * 1024 * 1024)
    })

    it('fails with the name of the code, and says which failures are worth another try', async () => {
      let code = 0
      await serve({ NodeStageVolume: () => Promise.reject(error(code, 'because')) })
      const channel = open()
      const again: string[] = []
      for (code = 1; code <= 16; code++) {
        const failure = await caught(channel.call('NodeStageVolume'))
        const grpcCode = status[code]!
        expect(failure.code).to.equal('ERR_CSI_RPC')
        expect(failure.details).to.include({ rpc: 'NodeStageVolume', grpcCode })
        expect(failure.message).to.equal(`NodeStageVolume failed: ${grpcCode}: because`)
        if (failure.retryable) again.push(grpcCode)
      }
      expect(again).to.have.members(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'ABORTED'])
      expect(channel.answered).to.equal(0)
    })

    it('fails with one short line, whatever the driver sends', async () => {
      let details = ''
      await serve({ NodeStageVolume: () => Promise.reject(error(status.INTERNAL, details)) })
      const channel = open()
      const messages: string[] = []
      for (details of ['TypeError: no mode\n    at a (/b.js:1:2)\n    at c', 'a\n\n  b', '', 'x'.repeat(4_000)])
        messages.push((await caught(channel.call('NodeStageVolume'))).message)
      expect(messages).to.deep.equal([
        'NodeStageVolume failed: INTERNAL: TypeError: no mode',
        'NodeStageVolume failed: INTERNAL: a b',
        'NodeStageVolume failed: INTERNAL',
        `NodeStageVolume failed: INTERNAL: ${'x'.repeat(500)}…`,
      ])
    })

    it('keeps a secret that the driver repeats out of the whole error', async () => {
      await serve({
        NodeStageVolume: () =>
          Promise.reject(error(status.UNAUTHENTICATED, 'login of root with hunter22 (not hunter2) failed')),
      })
      const secrets = { short: 'hunter2', long: 'hunter22', none: '' }
      const failure = await caught(open().call('NodeStageVolume', { secrets }))
      expect(failure.message).to.equal(
        'NodeStageVolume failed: UNAUTHENTICATED: login of root with *** (not ***) failed',
      )
      expect(failure.cause).to.equal(undefined)
    })

    it('tells a connection that was lost from a plugin that answers UNAVAILABLE', async () => {
      const arrived = signalled()
      const server = await serve({
        NodeStageVolume: () => Promise.reject(error(status.UNAVAILABLE, 'storage is down')),
        NodeUnstageVolume: (_, call) => (arrived.tell(), never({}, call)),
      })
      const channel = open()
      const answered = await caught(channel.call('NodeStageVolume'))
      expect(answered.details).to.not.have.property('connectionLost')
      const dropped = caught(channel.call('NodeUnstageVolume'))
      await arrived.told
      server.drop()
      expect((await dropped).details).to.include({ connectionLost: true })
      expect((await dropped).retryable).to.equal(true)
    })

    it('knows of every call in flight that it was the connection which was lost', async () => {
      const channels: CsiChannel[] = []
      const server = await serve({ GetPluginInfo: info, NodeUnstageVolume: never })
      for (let i = 0; i < 20; i++) channels.push(open())
      await Promise.all(channels.map((channel) => channel.call('GetPluginInfo')))
      const failures = channels.map((channel) => caught(channel.call('NodeUnstageVolume')))
      await turns(1)
      server.drop()
      for (const failure of await Promise.all(failures)) expect(failure.details).to.include({ connectionLost: true })
    })

    it('ends at its deadline where nobody answers: a plugin that hangs, a peer that says nothing', async () => {
      const server = await serve({ NodeGetInfo: never })
      const hung = await caught(open(50).call('NodeGetInfo'))
      expect(hung.details)
        .to.include({ rpc: 'NodeGetInfo', grpcCode: 'DEADLINE_EXCEEDED' })
        .and.not.have.property('connectionLost')
      expect(hung.retryable).to.equal(true)
      await server.close()
      served = []
      await serveMute()
      const mute = await caught(open().call('NodeGetInfo', {}, { timeoutMs: 50 }))
      expect(mute.details).to.include({ grpcCode: 'DEADLINE_EXCEEDED' })
    })

    it('ends when its signal is aborted, before or during the call, and the plugin hears of it', async () => {
      const arrived = signalled()
      const cancelled = signalled()
      const server = await serve({
        NodeGetInfo: (_, call) => {
          call.once('cancelled', cancelled.tell)
          arrived.tell()
          return never({}, call)
        },
      })
      const channel = open()
      const early = await caught(channel.call('NodeGetInfo', {}, { signal: AbortSignal.abort('no') }))
      expect(early).to.include({ code: 'ERR_ABORTED', cause: 'no' })
      expect(server.sockets.size).to.equal(0)

      const controller = new AbortController()
      const during = caught(channel.call('NodeGetInfo', {}, { signal: controller.signal }))
      await arrived.told
      controller.abort()
      expect((await during).code).to.equal('ERR_ABORTED')
      await cancelled.told
    })

    it('tells a signal that timed out from one that was aborted', async () => {
      await serve({ NodeGetInfo: never })
      const failure = await caught(open().call('NodeGetInfo', {}, { signal: AbortSignal.timeout(20) }))
      expect(failure.code).to.equal('ERR_TIMEOUT')
    })

    it('says that time ran out where that is what its caller was given up for', async () => {
      await serve({ NodeGetInfo: never })
      const reason = new PlugstreamError('ERR_TIMEOUT', 'mounting: not within 5 ms')
      const failure = await caught(open().call('NodeGetInfo', {}, { signal: AbortSignal.abort(reason) }))
      expect(failure).to.include({ code: 'ERR_TIMEOUT', message: 'NodeGetInfo: timed out', cause: reason })
    })

    it('rejects what it cannot send, and never throws in the call itself', async () => {
      const channel = open()
      const bad = [
        channel.call('Nonsense' as CsiRpc),
        channel.call('NodeStageVolume', { volume_capability: 'rw' as never }),
        ...[0, -1, NaN, Infinity, 2 ** 31, '5' as never].map((timeoutMs) =>
          channel.call('NodeGetInfo', {}, { timeoutMs }),
        ),
        channel.call('NodeGetInfo', {}, { signal: {} as AbortSignal }),
      ]
      for (const failure of await Promise.all(bad.map(caught))) expect(failure.code).to.equal('ERR_OPTION_INVALID')
    })

    it('tells why there is no connection: no file, a file that is no socket', async () => {
      const missing = await caught(open().call('Probe'))
      expect(missing.message).to.equal(`Probe failed: UNAVAILABLE: connect ENOENT ${socketPath}`)
      writeFileSync(socketPath, '')
      const file = await caught(open().call('Probe'))
      expect(file.message).to.equal(`Probe failed: UNAVAILABLE: connect ECONNREFUSED ${socketPath}`)
      for (const failure of [missing, file])
        expect(failure.details).to.include({ grpcCode: 'UNAVAILABLE', connectionLost: true })
    })
  })

  describe('idle', () => {
    it('is so at once where nothing is in flight, and when the last call has ended, however it ends', async () => {
      const answers: (() => void)[] = []
      const held: Handler = () => new Promise((resolve) => answers.push(() => resolve({})))
      await serve({ NodeGetInfo: held, NodeGetCapabilities: never, Probe: never })
      const channel = open()
      const ends: string[] = []
      const caller = new AbortController()
      const probed = channel.probe(caller.signal).catch(() => undefined)
      await channel.idle() // a probe is no call
      const answered = channel.call('NodeGetInfo').then(() => ends.push('answered'))
      const aborted = channel
        .call('NodeGetCapabilities', {}, { signal: caller.signal })
        .catch(() => ends.push('aborted'))
      const idle = channel.idle().then(() => ends.push('idle'))
      await until(() => answers.length === 1)
      answers[0]!()
      await answered
      caller.abort()
      await Promise.all([aborted, idle, probed])
      expect(ends).to.deep.equal(['answered', 'aborted', 'idle'])
    })

    it('waits for a call that follows on another at once', async () => {
      const answers: (() => void)[] = []
      await serve({ NodeGetInfo: () => new Promise((resolve) => answers.push(() => resolve({}))) })
      const channel = open()
      const calls = (async () => {
        await channel.call('NodeGetInfo')
        await channel.call('NodeGetInfo')
      })()
      let isIdle = false
      const idle = channel.idle().then(() => (isIdle = true))
      await until(() => answers.length === 1)
      answers[0]!()
      await until(() => answers.length === 2)
      expect(isIdle).to.equal(false)
      answers[1]!()
      await Promise.all([calls, idle])
    })
  })

  describe('close', () => {
    it('leaves no connection and no handle, connected or not', async () => {
      const before = await inUse()
      const server = await serve({ GetPluginInfo: info })
      const channels = [open(), open(), open()]
      await channels[0]!.call('GetPluginInfo')
      channels[0]!.onLink(() => {})
      await Promise.all(channels.map((channel) => channel.close()))
      await server.quiet()
      await server.close()
      served = []
      expect(await leftSince(before)).to.deep.equal([])
    })

    it('leaves no connection when it comes in the turn of the first call', async () => {
      const server = await serve({ GetPluginInfo: info })
      for (let round = 0; round < 200; round++) {
        const channel = csiKind().open(socketPath)
        const call = channel.call('GetPluginInfo').catch(() => undefined)
        await Promise.all([channel.close(), call])
      }
      await server.quiet()
      expect(server.sockets.size).to.equal(0)
    })

    it('ends the attempts to connect: one at most is still made, and its connection is dropped', async () => {
      for (let i = 0; i < 20; i++) {
        const channel = csiKind().open(socketPath)
        const call = channel.call('GetPluginInfo').catch(() => undefined)
        await Promise.all([channel.close(), call])
      }
      const server = await serve({ GetPluginInfo: info })
      const other = open()
      for (let i = 0; i < 100; i++) await other.call('GetPluginInfo')
      expect(server.accepted()).to.be.within(1, 1 + 20)
      while (server.sockets.size > 1) await turns(1)
    })

    it('ends the connection to a peer that never said anything', async () => {
      const server = await serveMute()
      const channel = open()
      const call = caught(channel.call('GetPluginInfo'))
      while (server.sockets.size === 0) await turns(1)
      await channel.close()
      expect((await call).code).to.equal('ERR_CLOSED')
      await server.quiet()
    })

    it('lets a call in flight finish, and resolves after it', async () => {
      const arrived = signalled()
      const go = signalled()
      const server = await serve({
        NodeGetInfo: async () => {
          arrived.tell()
          await go.told
          return { node_id: 'n' }
        },
      })
      const channel = open()
      const order: string[] = []
      const call = channel.call('NodeGetInfo').then((answer) => (order.push('answered'), answer))
      await arrived.told
      const closing = channel.close().then(() => order.push('closed'))
      await turns(2)
      go.tell()
      await closing
      expect((await call).node_id).to.equal('n')
      expect(order).to.deep.equal(['answered', 'closed'])
      await server.quiet()
    })

    it('knows of a call in flight that the connection was lost', async () => {
      const arrived = signalled()
      const server = await serve({ NodeGetInfo: (_, call) => (arrived.tell(), never({}, call)) })
      const channel = open()
      const call = caught(channel.call('NodeGetInfo'))
      await arrived.told
      const closing = channel.close()
      await turns(2)
      server.drop()
      expect((await call).details).to.include({ connectionLost: true })
      await closing
    })

    it('refuses every call that comes after it, and joins a close that is under way', async () => {
      await serve({ GetPluginInfo: info })
      const channel = open()
      await channel.call('GetPluginInfo')
      const closing = channel.close()
      const late = caught(channel.call('GetPluginInfo'))
      expect(channel.close()).to.equal(closing)
      expect((await late).code).to.equal('ERR_CLOSED')
      await closing
      expect((await caught(channel.call('GetPluginInfo'))).code).to.equal('ERR_CLOSED')
      expect(channel.onLink(() => {})).to.be.a('function')
    })
  })
})

function error(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details })
}

async function caught(promise: Promise<unknown>): Promise<PlugstreamError> {
  const failure: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  return failure as PlugstreamError
}

function record(channel: CsiChannel): LinkState[] {
  const states: LinkState[] = []
  channel.onLink((state) => states.push(state))
  return states
}

/** Resolves when the state is the one given, from the next change on. */
function reaches(channel: CsiChannel, wanted: LinkState): Promise<void> {
  return new Promise((resolve) => channel.onLink((state) => state === wanted && resolve()))
}

function signalled() {
  let tell!: () => void
  const told = new Promise<void>((resolve) => (tell = resolve))
  return { tell, told }
}

async function turns(times: number): Promise<void> {
  for (let i = 0; i < times; i++) await new Promise((resolve) => setImmediate(resolve))
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turns(1)
}
