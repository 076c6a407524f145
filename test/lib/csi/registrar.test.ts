import { expect } from 'chai'
import { registrationProto } from '../../../lib/csi/proto.js'
import { askRegistrar, tellRegistrar } from '../../../lib/csi/registrar.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { Registrar } from '../../fakes/registrar.js'
import { Scratch, staleSocket } from '../../support/sockets.js'
import { serveRaw } from './plugin-server.js'

const signal = new AbortController().signal
const options = { signal, timeoutMs: 5_000 }

async function failureOf(work: Promise<unknown>): Promise<PlugstreamError> {
  const failure: unknown = await work.catch((thrown: unknown) => thrown)
  if (failure instanceof PlugstreamError) return failure
  throw new Error(`it did not fail but came to ${JSON.stringify(failure)}`)
}

describe('a client of registrars', () => {
  let scratch: Scratch
  let path: string
  beforeEach(() => {
    scratch = new Scratch()
    path = scratch.file('reg.sock')
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('speaks the protocol of the kubelet', () => {
    const { GetInfo, NotifyRegistrationStatus } = registrationProto().Registration.service
    expect([GetInfo.path, NotifyRegistrationStatus.path]).to.deep.equal([
      '/pluginregistration.Registration/GetInfo',
      '/pluginregistration.Registration/NotifyRegistrationStatus',
    ])
    const info = { type: 'T', name: 'N', endpoint: 'E', supported_versions: ['1', '2'] }
    const bytes = ['\n', 1, 'T', 18, 1, 'N', 26, 1, 'E', 34, 1, '1', 34, 1, '2']
    expect([...GetInfo.responseSerialize(info)]).to.deep.equal(
      bytes.map((byte) => (typeof byte === 'string' ? byte.charCodeAt(0) : byte)),
    )
    const status = NotifyRegistrationStatus.requestSerialize({ plugin_registered: true, error: 'x' })
    expect([...status]).to.deep.equal([8, 1, 18, 1, 120])
  })

  it('asks what is announced, and tells what became of it', async () => {
    await using registrar = await Registrar.start(path, { name: 'a.csi', endpoint: '/a' }, { stays: true })
    expect(await askRegistrar(path, options)).to.deep.equal({
      type: 'CSIPlugin',
      name: 'a.csi',
      endpoint: '/a',
      supportedVersions: ['1.0.0'],
    })
    await tellRegistrar(path, { registered: true }, options)
    await tellRegistrar(path, { registered: false, error: 'why' }, options)
    expect(registrar.verdicts).to.deep.equal([{ registered: true }, { registered: false, error: 'why' }])
  })

  it('hears that a registrar has ended upon what it was told', async () => {
    await using _registrar = await Registrar.start(path, { name: 'a.csi' })
    const failure = await failureOf(tellRegistrar(path, { registered: false, error: 'why' }, options))
    expect(failure).to.include({ code: 'ERR_SOCKET', retryable: true })
  })

  it('is refused at once where nobody listens, and need not ask again', async () => {
    await staleSocket(path)
    for (const socketPath of [path, scratch.file('nothing')]) {
      const failure = await failureOf(askRegistrar(socketPath, options))
      expect(failure).to.include({ code: 'ERR_SOCKET', retryable: false })
      expect(failure.message).to.match(/ECONNREFUSED|ENOENT/)
    }
  })

  it('finds that something else is served there, and need not ask again', async () => {
    await using _other = await Registrar.start(path, { name: '' }, { isOther: true })
    const failure = await failureOf(askRegistrar(path, options))
    expect(failure).to.include({ code: 'ERR_SOCKET', retryable: false })
    expect(failure.message).to.contain('something else than a registrar')
  })

  it('gives up one that does not answer in time, in the same words each time', async () => {
    const server = await serveRaw(path, () => undefined)
    try {
      for (let again = 0; again < 2; again++) {
        const failure = await failureOf(askRegistrar(path, { signal, timeoutMs: 50 }))
        expect(failure).to.include({ code: 'ERR_SOCKET', retryable: true })
        expect(failure.message).to.equal(`the registration socket ${path} does not answer GetInfo: not within 50 ms`)
      }
      await server.quiet()
    } finally {
      await server.close()
    }
  })

  it('leaves when it is told to, before it begins too', async () => {
    const leaving = new AbortController()
    const server = await serveRaw(path, () => leaving.abort())
    try {
      for (let again = 0; again < 2; again++) {
        const failure = await failureOf(askRegistrar(path, { ...options, signal: leaving.signal }))
        expect(failure).to.include({ code: 'ERR_ABORTED' })
      }
      await server.quiet()
    } finally {
      await server.close()
    }
  })

  it('does not take a path that is too long for a socket', async () => {
    const failure = await failureOf(askRegistrar(scratch.file('x'.repeat(120)), options))
    expect(failure).to.include({ code: 'ERR_SOCKET_PATH' })
  })
})
