import { expect } from 'chai'
import type { PlugstreamError } from '../../../lib/errors.js'
import type { StoreRecord } from '../../../lib/store/state-store.js'
import { callKey, decodeCall, encodeCall, type PendingCall } from '../../../lib/volume/pending-call.js'
import { failureOf } from './support.js'

const create: PendingCall = {
  plugin: 'disk',
  call: 'createVolume',
  id: 'data',
  request: {
    name: 'data',
    volumeCapabilities: [{ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }],
    capacityRange: { requiredBytes: 2n ** 53n + 1n, limitBytes: 2n ** 63n - 1n },
    parameters: { tier: 'fast' },
  },
  secretsRef: 'keys',
}
const remove: PendingCall = { plugin: 'disk', call: 'deleteVolume', id: 'v1', request: { volumeId: 'v1' } }

const stored = (pending: PendingCall, over: object = {}, key = callKey(pending)): StoreRecord => {
  const raw = JSON.stringify({ ...(encodeCall(pending) as object), ...over })
  return { key, raw, value: JSON.parse(raw) as unknown }
}

const failure = (record: StoreRecord): Promise<PlugstreamError> => failureOf(Promise.resolve(record).then(decodeCall))

describe('the record of a call', () => {
  it('is the same after it was stored, sizes above 2^53 to the byte', () => {
    for (const pending of [create, remove]) expect(decodeCall(stored(pending))).to.deep.equal(pending)
  })

  it('is the same where only one end of the range is given, or none, or it is left open', () => {
    for (const capacityRange of [{ requiredBytes: 1n }, { limitBytes: 0n }, {}]) {
      const pending = { ...create, request: { ...create.request, capacityRange } }
      expect(decodeCall(stored(pending))).to.deep.equal(pending)
    }
    const open = { ...create, request: { name: 'data', capacityRange: { requiredBytes: 1n, limitBytes: undefined } } }
    expect(decodeCall(stored(open)).request).to.deep.equal({ name: 'data', capacityRange: { requiredBytes: 1n } })
    const none = { ...create, request: { name: 'data', capacityRange: undefined } }
    expect(decodeCall(stored(none)).request).to.deep.equal({ name: 'data' })
  })

  it('has the name of its secrets, and the request as it was', () => {
    expect(encodeCall(create)).to.deep.equal({
      schema: 1,
      plugin: 'disk',
      call: 'createVolume',
      id: 'data',
      request: {
        ...create.request,
        capacityRange: { requiredBytes: '9007199254740993', limitBytes: '9223372036854775807' },
      },
      secretsRef: 'keys',
    })
    expect(create.request).to.have.deep.nested.property('capacityRange.requiredBytes', 2n ** 53n + 1n)
  })

  it('is refused where a newer version wrote it', async () => {
    const { code, details } = await failure(stored(remove, { schema: 2 }))
    expect({ code, details }).to.deep.equal({ code: 'ERR_STORE_READ', details: { key: callKey(remove), schema: 2 } })
  })

  it('is refused where the store could not read it', async () => {
    const error = new SyntaxError('broken')
    const { code, cause } = await failure({ key: 'volume-call/x', raw: '{', error })
    expect({ code, cause }).to.deep.equal({ code: 'ERR_STORE_CORRUPT', cause: error })
  })

  it('is refused where it is the record of something else', async () => {
    const { code, details } = await failure(stored(remove, {}, callKey(create)))
    expect({ code, details }).to.deep.equal({ code: 'ERR_STORE_CORRUPT', details: { key: callKey(create) } })
  })

  const broken: [what: string, over: object][] = [
    ['without a schema', { schema: undefined }],
    ['without a plugin', { plugin: undefined }],
    ['with an empty plugin', { plugin: '' }],
    ['without a call', { call: undefined }],
    ['of a call that there is not', { call: 'createEverything' }],
    ['of a call that is only a property of every object', { call: 'constructor' }],
    ['of a call that changes nothing', { call: 'listVolumes' }],
    ['without what it is about', { id: undefined }],
    ['without a request', { request: undefined }],
    ['with a request that is null', { request: null }],
    ['with a request that is a text', { request: 'all' }],
    ['with a size that is none', { request: { capacityRange: { requiredBytes: 'big' } } }],
    ['with a name of secrets that is none', { secretsRef: 7 }],
  ]
  for (const [what, over] of broken)
    it(`is refused ${what}`, async () => {
      const { code, details } = await failure(stored(create, over))
      expect({ code, details }).to.deep.equal({ code: 'ERR_STORE_CORRUPT', details: { key: callKey(create) } })
    })
})
