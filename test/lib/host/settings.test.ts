import { resolve } from 'node:path'
import { expect } from 'chai'
import { csiKind } from '../../../lib/csi/kind.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { hostSettings, type HostOptions } from '../../../lib/host/settings.js'

const stateDir = '/var/lib/agent'

describe('hostSettings', () => {
  const refused: readonly (readonly [field: string, options: unknown])[] = [
    ['init', undefined],
    ['init', null],
    ['init', 'text'],
    ['stateDir', {}],
    ['stateDir', { stateDir: 'a\0b' }],
    ['nodeId', { stateDir, nodeId: 5 }],
    ['registrationDirectory', { stateDir, registrationDirectory: '' }],
    ['registrationDirectory', { stateDir, registrationDirectory: true }],
    ['timing', { stateDir, timing: null }],
    ['timing', { stateDir, timing: [1] }],
    ['timing.heartbeat', { stateDir, timing: { heartbeat: 1 } }],
    ['timing.heartbeatMs', { stateDir, timing: { heartbeatMs: Number.NaN } }],
    ['timing.heartbeatMs', { stateDir, timing: { heartbeatMs: 0.001 } }],
    ['kinds', { stateDir, kinds: 5 }],
    ['kinds[0]', { stateDir, kinds: [null] }],
    ['kinds[0].kind', { stateDir, kinds: [{}] }],
    ['kinds[0].types', { stateDir, kinds: [{ kind: 'toy' }] }],
    ['kinds[0].types', { stateDir, kinds: [{ kind: 'toy', types: [''] }] }],
    ['kinds[0].channelOptions', { stateDir, kinds: [{ ...csiKind(), channelOptions: 'service' }] }],
    ['kinds[1].configure', { stateDir, kinds: [csiKind(), { kind: 'toy', types: [] }] }],
    ['kinds[1].open', { stateDir, kinds: [csiKind(), { ...csiKind(), kind: 'toy', open: 'x' }] }],
    ['kinds[0].client', { stateDir, kinds: [{ ...csiKind(), client: null }] }],
  ]
  for (const [field, options] of refused) {
    it(`refuses ${JSON.stringify(options)} naming ${field}`, () => {
      expect(() => hostSettings(options as HostOptions, () => []))
        .to.throw(PlugstreamError)
        .with.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
    })
  }

  it('fills in what is left out', () => {
    const { timing, nodeId, kinds, registrationDirectory } = hostSettings(
      { stateDir, timing: { heartbeatMs: 7 } },
      () => [],
    )
    expect(timing).to.include({ heartbeatMs: 7, probeTimeoutMs: 3_000 })
    expect(nodeId).to.not.equal('')
    expect([kinds, registrationDirectory]).to.deep.equal([[], undefined])
  })

  it('makes directories absolute paths', () => {
    const settings = hostSettings({ stateDir: 'state', registrationDirectory: 'r' }, () => [])
    expect([settings.stateDir, settings.registrationDirectory]).to.deep.equal([resolve('state'), resolve('r')])
  })

  it('gives what is built in the timing, and lets a kind take the place of one of its name', () => {
    const built = { ...csiKind(), kind: 'csi' }
    const own = { ...csiKind(), kind: 'csi' }
    let rpcTimeoutMs = 0
    const { kinds } = hostSettings({ stateDir, timing: { rpcTimeoutMs: 3 }, kinds: [own] }, (timing) => {
      rpcTimeoutMs = timing.rpcTimeoutMs
      return [built]
    })
    expect(kinds).to.have.length(1)
    expect(kinds[0]).to.equal(own)
    expect(rpcTimeoutMs).to.equal(3)
  })

  it('refuses two kinds that share a type, naming it', () => {
    const kinds = [csiKind(), { ...csiKind(), kind: 'other' }]
    expect(() => hostSettings({ stateDir, kinds }, () => []))
      .to.throw('kinds is "csi-controller"')
      .with.property('code', 'ERR_OPTION_INVALID')
  })

  it('refuses Windows with the reason', () => {
    const platform = Object.getOwnPropertyDescriptor(process, 'platform')
    Object.defineProperty(process, 'platform', { ...platform, value: 'win32' })
    try {
      expect(() => hostSettings({ stateDir }, () => []))
        .to.throw('Linux and macOS')
        .with.property('code', 'ERR_USAGE')
    } finally {
      Object.defineProperty(process, 'platform', platform ?? {})
    }
  })
})
