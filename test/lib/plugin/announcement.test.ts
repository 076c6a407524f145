import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { readAnnouncement, type RegistrarInfo } from '../../../lib/plugin/announcement.js'

const info: RegistrarInfo = { type: 'CSIPlugin', name: 'a.csi', endpoint: '/run/a.sock', supportedVersions: ['1.0.0'] }
const read = (overrides: Partial<RegistrarInfo> = {}) => readAnnouncement({ ...info, ...overrides }, '/r/a.sock')

function refusal(overrides: Partial<RegistrarInfo>): PlugstreamError {
  try {
    read(overrides)
  } catch (failure) {
    if (failure instanceof PlugstreamError) return failure
  }
  throw new Error('it was read')
}

describe('what a registrar announces', () => {
  it('is the name and the endpoint of a driver', () => {
    expect(read()).to.deep.equal({ name: 'a.csi', endpoint: '/run/a.sock' })
    expect(read({ endpoint: 'unix:///run/a.sock' }).endpoint).to.equal('/run/a.sock')
    expect(read({ endpoint: 'unix:/run/a.sock' }).endpoint).to.equal('/run/a.sock')
  })

  it('without an endpoint is served on the registration socket itself', () => {
    expect(read({ endpoint: '' }).endpoint).to.equal('/r/a.sock')
  })

  it('has a first major version of CSI among those it names', () => {
    for (const supportedVersions of [['1.0.0'], ['0.3.0', '1.11'], ['v1'], ['2.0.0', '1']])
      expect(read({ supportedVersions }).name).to.equal('a.csi')
    for (const supportedVersions of [[], ['0.3.0'], ['10.0.0'], ['2.0.0']])
      expect(refusal({ supportedVersions }).details).to.deep.equal({ field: 'supported_versions' })
  })

  it('is refused by the field that is wrong', () => {
    expect(refusal({ type: 'DRAPlugin' }).message).to.contain('type is "DRAPlugin"')
    for (const [field, value] of [
      ['type', ''],
      ['name', ''],
      ['endpoint', 'run/a.sock'],
      ['endpoint', '/run/a\0.sock'],
    ] as const)
      expect(refusal({ [field]: value })).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
  })

  it('is refused where the endpoint is too long for a socket', () => {
    const endpoint = `/${'x'.repeat(120)}`
    expect(refusal({ endpoint })).to.include({ code: 'ERR_SOCKET_PATH' })
  })
})
