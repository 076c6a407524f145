import { once } from 'node:events'
import { Client, Metadata, status, type ServiceError } from '@grpc/grpc-js'
import { expect } from 'chai'
import { csiKind } from '../../../lib/csi/kind.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { GrpcChannel } from '../../../lib/grpc/channel.js'
import { grpcKind } from '../../../lib/grpc/kind.js'
import { healthProto } from '../../../lib/grpc/proto.js'
import type { PluginChannel } from '../../../lib/plugin/kind.js'
import { Scratch } from '../../support/sockets.js'
import { serveHealth, type HealthAnswers } from './health-server.js'

type HealthClient = InstanceType<ReturnType<typeof healthProto>['Health']>

describe('a client of a gRPC plugin', () => {
  let scratch: Scratch
  let opened: GrpcChannel[]
  let served: { close(): Promise<void> }[]
  beforeEach(() => {
    scratch = new Scratch()
    opened = []
    served = []
  })
  afterEach(async () => {
    for (const channel of opened) channel.end()
    await Promise.all(opened.map((channel) => channel.close()))
    await Promise.all(served.map((server) => server.close()))
    scratch[Symbol.dispose]()
  })

  /** A channel to a server of its own. */
  async function serving(name: string, answers: HealthAnswers): Promise<GrpcChannel> {
    served.push(await serveHealth(scratch.file(name), answers))
    const channel = grpcKind().open(scratch.file(name))
    opened.push(channel)
    return channel
  }
  const always = (servingStatus: string): HealthAnswers => ({
    check: () => ({ status: servingStatus }),
    watch: (stream) => void stream.write({ status: servingStatus }),
  })
  const clientOf = (pick: () => PluginChannel): HealthClient => grpcKind().client(pick).makeClient(healthProto().Health)
  const check = (client: HealthClient): Promise<string> =>
    new Promise((resolve, reject) =>
      client.check({ service: '' }, (error, answer) => (error ? reject(error) : resolve(String(answer?.status)))),
    )
  const caught = async (work: Promise<unknown>): Promise<ServiceError> => {
    const failure: unknown = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(failure).to.be.instanceOf(Error)
    return failure as ServiceError
  }

  it('makes each call over the channel that is right then, and leaves one under way where it began', async () => {
    const [one, other] = [await serving('one', always('SERVING')), await serving('other', always('NOT_SERVING'))]
    let current = one
    const client = clientOf(() => current)
    expect(await check(client)).to.equal('SERVING')
    const stream = client.watch({ service: '' })
    expect(await once(stream, 'data')).to.deep.equal([{ status: 'SERVING' }])
    current = other
    expect(await check(client)).to.equal('NOT_SERVING')
    expect([one.answered, other.answered]).to.deep.equal([2, 1])
    const ended = once(stream, 'error')
    stream.cancel()
    expect(((await ended) as [ServiceError])[0].code).to.equal(status.CANCELLED)
  })

  it('fails with UNAVAILABLE, never in the call itself, where there is nobody to be called', async () => {
    const client = clientOf(() => {
      throw new PlugstreamError('ERR_PLUGIN_UNKNOWN', 'grpc plugin "web" is not registered')
    })
    const wanted = { code: status.UNAVAILABLE, details: 'grpc plugin "web" is not registered' }
    expect(await caught(check(client))).to.include(wanted)
    const [failure] = (await once(client.watch({ service: '' }), 'error')) as [ServiceError]
    expect(failure).to.include(wanted)
    const { channel } = grpcKind().client(() => {
      throw new PlugstreamError('ERR_CLOSED', 'the host was closed')
    })
    const upload = new Promise<unknown>((resolve) => {
      const bare = new Client('', null as never, { channelOverride: channel })
      const bytes = (given: Buffer): Buffer => given
      const call = bare.makeClientStreamRequest('/a.B/C', bytes, bytes, new Metadata(), {}, resolve)
      call.write(Buffer.from('a'))
      call.end(Buffer.from('b'))
    })
    expect(await upload).to.include({ code: status.UNAVAILABLE, details: 'the host was closed' })
  })

  it('fails as the server does, and by the deadline that its caller gives', async () => {
    const answers: HealthAnswers = { check: () => ({ code: status.NOT_FOUND, details: 'no such service' }) }
    const client = clientOf(await serving('one', answers).then((channel) => () => channel))
    expect(await caught(check(client))).to.include({ code: status.NOT_FOUND, details: 'no such service' })
    answers.check = () => new Promise(() => undefined)
    const late = new Promise<unknown>((resolve) => client.check({}, { deadline: Date.now() + 20 }, resolve))
    expect(await late).to.include({ code: status.DEADLINE_EXCEEDED })
  })

  it('lets a call under way finish when its channel closes, ends it when there is no more time, and makes no other', async () => {
    const asked: (() => void)[] = []
    const arrivals: (() => void)[] = []
    const check$ = (): Promise<{ status: string }> => {
      arrivals.shift()?.()
      return new Promise((resolve) => asked.push(() => resolve({ status: 'SERVING' })))
    }
    const arrival = (): Promise<void> => new Promise((resolve) => arrivals.push(resolve))
    const channel = await serving('one', { check: check$ })
    const client = clientOf(() => channel)
    const arrived = Promise.all([arrival(), arrival()])
    const [finished, cut] = [check(client), caught(check(client))]
    await arrived
    const closing = channel.close()
    expect(await caught(check(client))).to.include({ code: status.UNAVAILABLE })
    asked[0]?.()
    expect(await finished).to.equal('SERVING')
    channel.end()
    expect(await cut).to.include({ code: status.CANCELLED, details: 'the host was closed' })
    await closing
  })

  it('keeps its channel from being idle while it is under way, a stream too', async () => {
    const channel = await serving('one', always('SERVING'))
    await channel.idle()
    const stream = clientOf(() => channel).watch({ service: '' })
    await once(stream, 'data')
    const ends: string[] = []
    const idle = channel.idle().then(() => ends.push('idle'))
    stream.once('error', () => ends.push('ended'))
    stream.cancel()
    await idle
    expect(ends).to.deep.equal(['ended', 'idle'])
  })

  it('says whether there is somebody to be called, and closes nothing that is not its own', async () => {
    const channel = await serving('one', always('SERVING'))
    let reachable = true
    const client = clientOf(() => {
      if (reachable) return channel
      throw new PlugstreamError('ERR_PLUGIN_NOT_READY', 'not yet')
    })
    const ready = (): Promise<Error | undefined> => new Promise((resolve) => client.waitForReady(Infinity, resolve))
    expect(await ready()).to.equal(undefined)
    client.close()
    expect(await check(client)).to.equal('SERVING')
    reachable = false
    expect(await ready()).to.be.instanceOf(Error)
  })

  it('is refused the channel of another kind', async () => {
    const channel = csiKind().open(scratch.file('csi'))
    expect((await caught(check(clientOf(() => channel)))).details).to.contain('another kind')
    await channel.close()
  })
})
