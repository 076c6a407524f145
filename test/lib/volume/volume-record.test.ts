import { expect } from 'chai'
import fc from 'fast-check'
import { PlugstreamError } from '../../../lib/errors.js'
import type { StoreRecord } from '../../../lib/store/state-store.js'
import {
  claimOf,
  decodeVolume,
  encodeVolume,
  newRecord,
  volumeKey,
  volumePrefix,
  withClaim,
  without,
  withoutClaim,
  type Claim,
  type VolumeRecord,
} from '../../../lib/volume/volume-record.js'
import { failureOf } from './support.js'

const claim = (allocId: string, over: Partial<Claim> = {}): Claim => ({
  allocId,
  access: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' },
  path: `/v/per-alloc/${allocId}`,
  held: true,
  ...over,
})

const whole: VolumeRecord = {
  plugin: 'disk',
  namespace: 'default',
  volumeId: 'v/1 \ud800',
  root: '/v',
  secretsRef: 'keys',
  volumeContext: { size: 'big', '': '' },
  publishContext: { lun: '7' },
  attachedTo: 'node-1',
  stage: { access: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', fsType: 'ext4' }, path: '/v/staging/v1' },
  claims: [
    claim('a', { mountName: 'data', access: { kind: 'block', accessMode: 'MULTI_NODE_READER_ONLY', readonly: true } }),
    claim('b', { held: false }),
  ],
  growth: { capacityRange: { requiredBytes: 2n ** 53n + 1n, limitBytes: 2n ** 63n - 1n }, secretsRef: 'others' },
}
const least: VolumeRecord = { plugin: 'disk', namespace: 'default', volumeId: 'v1', root: '/v', claims: [] }

/** As a store gives it: JSON, and nothing shared with what was saved. */
const stored = (record: VolumeRecord, over: object = {}, key = volumeKey(record)): StoreRecord => {
  const raw = JSON.stringify({ ...(encodeVolume(record) as object), ...over })
  return { key, raw, value: JSON.parse(raw) as unknown }
}

const failure = (record: StoreRecord): Promise<PlugstreamError> => failureOf(Promise.resolve(record).then(decodeVolume))

describe('the record of a volume', () => {
  it('is the same after it was stored, with everything in it and with nothing', () => {
    for (const record of [whole, least]) expect(decodeVolume(stored(record))).to.deep.equal(record)
  })

  it('has a key of its own, whatever the names', () => {
    const name = fc.oneof(fc.string({ minLength: 1, unit: 'binary' }), fc.constantFrom('/', 'a', 'a/b', '~', 'A'))
    const ref = fc.record({ plugin: name, namespace: name, volumeId: name })
    fc.assert(
      fc.property(ref, ref, (one, two) => {
        const isSame = (['plugin', 'namespace', 'volumeId'] as const).every((field) => one[field] === two[field])
        expect(volumeKey(one) === volumeKey(two)).to.equal(isSame)
        expect(volumeKey(one).startsWith(volumePrefix)).to.equal(true)
      }),
    )
    const [one, two] = [
      { plugin: 'a', namespace: 'b/c', volumeId: 'd' },
      { plugin: 'a/b', namespace: 'c', volumeId: 'd' },
    ]
    expect(volumeKey(one)).not.to.equal(volumeKey(two))
  })

  it('has the name of its secrets in it, and no secret', () => {
    const written = JSON.stringify(encodeVolume(whole))
    expect(written).to.contain('keys')
    expect(Object.keys(encodeVolume(whole) as object).sort()).to.deep.equal(['schema', ...Object.keys(whole)].sort())
  })

  it('is refused where a newer version wrote it, since what it means is not known', async () => {
    const { code, details } = await failure(stored(whole, { schema: 2 }))
    expect({ code, details }).to.deep.equal({
      code: 'ERR_STORE_READ',
      details: { key: volumeKey(whole), schema: 2 },
    })
  })

  it('is refused where the store could not read it, with what the store said', async () => {
    const error = new SyntaxError('Unexpected end of JSON input')
    const { code, cause, details, message } = await failure({ key: 'volume/x', raw: '{', error })
    expect({ code, cause, details }).to.deep.equal({
      code: 'ERR_STORE_CORRUPT',
      cause: error,
      details: { key: 'volume/x' },
    })
    expect(message).to.contain('volume/x').and.contain('Unexpected end')
  })

  it('is refused where it is the record of another volume', async () => {
    const { code, details } = await failure(stored(whole, {}, volumeKey(least)))
    expect({ code, details }).to.deep.equal({ code: 'ERR_STORE_CORRUPT', details: { key: volumeKey(least) } })
  })

  const place = { access: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }, path: '/v/x' }
  const broken: [what: string, over: object][] = [
    ['without a schema', { schema: undefined }],
    ['with a schema that is none', { schema: '1' }],
    ['of a schema that there never was', { schema: 0 }],
    ...(['plugin', 'namespace', 'volumeId', 'root'] as const).flatMap((field): [string, object][] => [
      [`without its ${field}`, { [field]: undefined }],
      [`with an empty ${field}`, { [field]: '' }],
      [`with a number for its ${field}`, { [field]: 7 }],
    ]),
    ['without claims', { claims: undefined }],
    ['with claims that are no list', { claims: { 0: claim('a') } }],
    ['with a claim that is null', { claims: [claim('a'), null] }],
    ['with a claim of nobody', { claims: [{ ...claim('a'), allocId: undefined }] }],
    ['with a claim that is neither held nor let go', { claims: [{ ...claim('a'), held: undefined }] }],
    ['with a claim without a place', { claims: [{ ...claim('a'), path: undefined }] }],
    ['with a claim whose place is no absolute path', { claims: [{ ...claim('a'), path: 'v/x' }] }],
    ['with a claim without access', { claims: [{ ...claim('a'), access: undefined }] }],
    ['with a claim of an unknown kind', { claims: [{ ...claim('a'), access: { ...place.access, kind: 'file' } }] }],
    ['with a claim without a mode', { claims: [{ ...claim('a'), access: { kind: 'block' } }] }],
    ['with a stage that is null', { stage: null }],
    ['with a stage without a place', { stage: { ...place, path: undefined } }],
    ['with a stage without access', { stage: { ...place, access: null } }],
    ['with a growth that is null', { growth: null }],
    ['with a growth to nothing', { growth: {} }],
    ['with a growth to what is no size', { growth: { capacityRange: { requiredBytes: 'much' } } }],
  ]
  for (const [what, over] of broken)
    it(`is refused ${what}`, async () => {
      const { code, details } = await failure(stored(whole, over))
      expect({ code, details }).to.deep.equal({ code: 'ERR_STORE_CORRUPT', details: { key: volumeKey(whole) } })
    })

  it('is refused where it is no object at all', async () => {
    for (const value of [null, 'text', 7, [], true])
      expect(await failure({ key: 'volume/x', raw: value, value })).to.have.property('code', 'ERR_STORE_CORRUPT')
  })

  it('gets a claim in the place of the one at its path, or after the others', () => {
    const two = withClaim(withClaim(least, claim('a')), claim('b'))
    expect(two.claims).to.deep.equal([claim('a'), claim('b')])
    const free = withClaim(two, claim('a', { held: false }))
    expect(free.claims).to.deep.equal([claim('a', { held: false }), claim('b')])
    expect(two.claims).to.deep.equal([claim('a'), claim('b')])
    expect(claimOf(free, '/v/per-alloc/a')).to.deep.equal(claim('a', { held: false }))
    expect([claimOf(free, '/v/per-alloc/c'), claimOf(undefined, '/v/per-alloc/a')]).to.deep.equal([
      undefined,
      undefined,
    ])
  })

  it('loses a claim, and fields, and nothing else', () => {
    expect(withoutClaim(whole, '/v/per-alloc/a')).to.deep.equal({ ...whole, claims: [whole.claims[1]] })
    expect(withoutClaim(whole, '/v/per-alloc/c')).to.deep.equal(whole)
    const { stage: _stage, attachedTo: _node, ...rest } = whole
    expect(without(whole, 'stage', 'attachedTo')).to.deep.equal(rest)
    expect(without(least, 'stage', 'publishContext')).to.deep.equal(least)
  })

  it('begins with nobody who holds the volume, and without what belongs to one use', () => {
    const access = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' } as const
    const wanted = { plugin: 'disk', namespace: 'default', volumeId: 'v1', allocId: 'a', access }
    expect(newRecord(wanted, '/v')).to.deep.equal(least)
  })
})
