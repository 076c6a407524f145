import { expect } from 'chai'
import { defaultTiming } from '../../lib/defaults.js'
import { readmeTable } from '../support/readme.js'

describe('the default timing', () => {
  it('is what the README says', () => {
    const told = readmeTable('Timing').map(([name = '', value = '']) => [
      name.replaceAll('`', ''),
      Number(value.replaceAll(' ', '')),
    ])
    expect(told).to.deep.equal(Object.entries(defaultTiming))
  })

  it('knows of a plugin that hangs within ten seconds', () => {
    const { heartbeatMs, probeTimeoutMs } = defaultTiming
    expect(heartbeatMs + 2 * probeTimeoutMs).to.be.at.most(10_000)
  })
})
