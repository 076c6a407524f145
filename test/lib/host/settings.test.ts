import { expect } from 'chai'
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
    ['timing', { stateDir, timing: null }],
    ['timing', { stateDir, timing: [1] }],
    ['timing.heartbeat', { stateDir, timing: { heartbeat: 1 } }],
    ['timing.heartbeatMs', { stateDir, timing: { heartbeatMs: Number.NaN } }],
    ['timing.heartbeatMs', { stateDir, timing: { heartbeatMs: 0.001 } }],
    ['kinds', { stateDir, kinds: 5 }],
    ['kinds', { stateDir, kinds: [null] }],
    ['kinds', { stateDir, kinds: [{ kind: 'toy' }] }],
  ]
  for (const [field, options] of refused) {
    it(`refuses ${JSON.stringify(options)} naming ${field}`, () => {
      expect(() => hostSettings(options as HostOptions, () => []))
        .to.throw(PlugstreamError)
        .with.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
    })
  }

  it('fills in what is left out', () => {
    const { timing, nodeId, kinds } = hostSettings({ stateDir, timing: { heartbeatMs: 7 } }, () => [])
    expect(timing).to.include({ heartbeatMs: 7, probeTimeoutMs: 3_000 })
    expect(nodeId).to.not.equal('')
    expect(kinds).to.deep.equal([])
  })
})
