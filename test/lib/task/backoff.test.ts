import { expect } from 'chai'
import { backoffMs } from '../../../lib/task/backoff.js'

describe('backoff', () => {
  const plain = { minDelayMs: 100, maxDelayMs: 5_000, factor: 3, jitter: 0 }

  it('begins with the least pause and grows by its factor up to the longest', () => {
    expect([0, 1, 2, 3, 4, 5].map((tries) => backoffMs(plain, tries, 0))).to.deep.equal([
      100, 300, 900, 2_700, 5_000, 5_000,
    ])
  })

  it('takes no more than its share of chance from a pause, and adds none', () => {
    const jittered = { ...plain, jitter: 0.2 }
    expect(backoffMs(jittered, 1, 0)).to.equal(300)
    expect(backoffMs(jittered, 1, 0.5)).to.equal(270)
    expect(backoffMs(jittered, 1, 0.999_999)).to.equal(240)
  })

  it('stays a number however often it was tried', () => {
    for (const tries of [100, 2_000, 436_364_316, Number.MAX_SAFE_INTEGER]) {
      expect(backoffMs({ ...plain, factor: 100 }, tries, 0), `${tries} tries`).to.equal(5_000)
      expect(backoffMs({ ...plain, minDelayMs: 0, factor: 100 }, tries, 0), `${tries} tries`).to.equal(0)
    }
  })

  it('gives one pause for ever with factor 1', () => {
    expect(backoffMs({ ...plain, factor: 1 }, 9, 0)).to.equal(100)
  })
})
