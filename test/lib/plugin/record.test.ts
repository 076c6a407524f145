import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import type { PluginInfo, PluginRef } from '../../../lib/plugin/plugin.js'
import { decodeRecord, decodeSequence, encodeRecord, encodeSequence, recordKey } from '../../../lib/plugin/record.js'

const plugin: PluginInfo = {
  type: 'csi-node',
  name: 'ebs',
  allocId: 'a1',
  version: '1',
  provider: 'p',
  connection: { socketPath: '/run/a.sock' },
  options: { taskName: ':driver' },
  registeredAt: 5,
}
const key = recordKey(plugin)
const good = encodeRecord({ plugin, order: 3 }) as Record<string, unknown>

function refusal(work: () => unknown): PlugstreamError {
  try {
    work()
  } catch (thrown) {
    return thrown as PlugstreamError
  }
  throw new Error('nothing was refused')
}

describe('the key of a record', () => {
  it('says type, name and alloc', () => {
    expect(key).to.equal('plugin/csi-node/ebs/a1')
  })

  it('is another for every ref, and one that any engine can hold', () => {
    const odd = [
      'a',
      'A',
      'a/b',
      'a%2fb',
      '.',
      '..',
      '../..',
      'é',
      'e\u0301',
      '\ud800',
      '\udc00',
      '\0',
      '%',
      '_',
      ' ',
      'x'.repeat(300),
    ]
    const refs: PluginRef[] = odd.flatMap((text) => [
      { type: text, name: 'n', allocId: 'i' },
      { type: 't', name: text, allocId: 'i' },
      { type: 't', name: 'n', allocId: text },
    ])
    refs.push({ type: 'a/b', name: 'c', allocId: 'd' }, { type: 'a', name: 'b/c', allocId: 'd' })
    const keys = refs.map(recordKey)
    expect(new Set(keys.map((one) => one.toLowerCase())).size).to.equal(refs.length)
    for (const one of keys) {
      expect(one).to.match(/^plugin\/[a-z0-9_.~-]+\/[a-z0-9_.~-]+\/[a-z0-9_.~-]+$/)
      expect(one.split('/').some((part) => part === '.' || part === '..')).to.equal(false)
      expect(one.length).to.be.at.most(255)
    }
  })
})

describe('a record', () => {
  it('is read back as it was written, frozen', () => {
    const value: unknown = JSON.parse(JSON.stringify(good))
    const record = decodeRecord({ key, raw: '', value })
    expect(record).to.deep.equal({ plugin, order: 3 })
    expect(Object.isFrozen(record.plugin)).to.equal(true)
  })

  const broken: [what: string, value: unknown][] = [
    ['nothing', null],
    ['a text', 'plugin'],
    ['no schema', { ...good, schema: undefined }],
    ['an older schema than any', { ...good, schema: 0 }],
    ['no order', { ...good, order: undefined }],
    ['an order that is no number', { ...good, order: '3' }],
    ['no plugin', { ...good, plugin: undefined }],
    ['no time', { ...good, plugin: { ...plugin, registeredAt: undefined } }],
    ['no socket path', { ...good, plugin: { ...plugin, connection: {} } }],
    ['a socket path over the limit', { ...good, plugin: { ...plugin, connection: { socketPath: 'x'.repeat(200) } } }],
    ['the plugin of another key', { ...good, plugin: { ...plugin, allocId: 'a2' } }],
  ]
  for (const [what, value] of broken) {
    it(`is corrupt with ${what}, and says so with its key`, () => {
      const refused = refusal(() => decodeRecord({ key, raw: '', value }))
      expect(refused.code).to.equal('ERR_STORE_CORRUPT')
      expect(refused.details.key).to.equal(key)
      expect(refused.message).to.contain(key)
    })
  }

  it('is corrupt where it could not be decoded, and says why', () => {
    const error = new Error('half a record')
    const refused = refusal(() => decodeRecord({ key, raw: '{', error }))
    expect(refused).to.include({ code: 'ERR_STORE_CORRUPT', cause: error })
    expect(refused.message).to.contain('half a record')
  })

  it('of a newer version is not corrupt', () => {
    const refused = refusal(() => decodeRecord({ key, raw: '', value: { schema: 2, whatever: true } }))
    expect(refused.code).to.equal('ERR_STORE_READ')
    expect(refused.message).to.contain('newer version').and.contain(key)
    expect(refused.details).to.deep.equal({ key, schema: 2 })
  })

  it('of the sequence numbers is read back, or corrupt', () => {
    expect(decodeSequence({ key: 's', raw: '', value: encodeSequence(1_000) })).to.equal(1_000)
    expect(refusal(() => decodeSequence({ key: 's', raw: '', value: { schema: 1 } })).code).to.equal(
      'ERR_STORE_CORRUPT',
    )
  })
})
