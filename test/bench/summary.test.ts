import { expect } from 'chai'
import { quantile, summarise } from './summary.js'
import { table } from './table.js'

const hundred = Array.from({ length: 100 }, (_, at) => ({ ours: 100 - at, limit: (100 - at) / 2 }))

describe('a bench summary', () => {
  it('has the median and the worst hundredth of times and of rates', () => {
    const times = summarise({ name: 'a', unit: 'ms' }, hundred)
    expect(times).to.include({ rounds: 100, median: 50, p99: 99, limitMedian: 25, limitP99: 49.5, ratio: 2 })
    expect(summarise({ name: 'a', unit: 'ops/s' }, hundred)).to.include({ median: 50, p99: 1, limitP99: 0.5 })
  })

  it('compares each round with its own limit, so that one disturbed round counts once', () => {
    const samples = [{ ours: 2, limit: 1 }, { ours: 200, limit: 100 }, { ours: 2, limit: 1 }] // prettier-ignore
    expect(summarise({ name: 'a', unit: 'ms' }, samples).ratio).to.equal(2)
  })

  it('says whether every aim is met, and nothing where there is none', () => {
    const met = (aim: object): boolean | undefined => summarise({ name: 'a', unit: 'ms', aim }, hundred).met
    expect(met({})).to.equal(undefined)
    expect(met({ medianAtMost: 50, ratioAtMost: 2 })).to.equal(true)
    expect(met({ medianAtMost: 50, ratioAtMost: 1.9 })).to.equal(false)
    expect(met({ medianAtMost: 49 })).to.equal(false)
    expect(met({ ratioAtLeast: 2 })).to.equal(true)
    expect(met({ ratioAtLeast: 2.1 })).to.equal(false)
  })

  it('takes quantiles by nearest rank', () => {
    expect([0, 0.5, 0.99, 1].map((part) => quantile([3, 1, 2], part))).to.deep.equal([1, 2, 3, 3])
    expect(quantile([], 0.5)).to.be.NaN
  })

  it('is a line of a table', () => {
    const lines = table([summarise({ name: 'a-thing', unit: 'ms', aim: { ratioAtMost: 1 } }, hundred)]).split('\n')
    expect(lines).to.have.length(2)
    expect(lines[1]).to.match(/^a-thing +50\.0 ms +99\.0 +25\.0 +49\.5 +2\.00× +≤ 1× +MISSED +100$/)
  })
})
