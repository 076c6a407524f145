import { expect } from 'chai'
import { retryDelayMs, retryPolicy } from '../../../lib/csi/retry-policy.js'

describe('the retry policy', () => {
  const leftMs = 1_000_000
  const delays = (code: string, count: number, random = 0) =>
    Array.from({ length: count }, (_, before) => retryDelayMs(retryPolicy, { code, before, leftMs, random }))

  const table: [code: string, ...delays: (number | undefined)[]][] = [
    ['UNAVAILABLE', 50, 100, 200, 400, 800, 1_600, 2_000, 2_000],
    ['DEADLINE_EXCEEDED', 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
    ['ABORTED', 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000],
    ['RESOURCE_EXHAUSTED', 500, 1_000, 2_000, undefined],
    ...[
      'CANCELLED',
      'UNKNOWN',
      'INVALID_ARGUMENT',
      'NOT_FOUND',
      'ALREADY_EXISTS',
      'PERMISSION_DENIED',
      'FAILED_PRECONDITION',
      'OUT_OF_RANGE',
      'UNIMPLEMENTED',
      'INTERNAL',
      'DATA_LOSS',
      'UNAUTHENTICATED',
      '77',
      'constructor',
    ].map((code): [string, undefined] => [code, undefined]),
  ]
  for (const [code, ...expected] of table) {
    it(`pauses after ${code} for ${expected.map((ms) => ms ?? 'ever').join(', ')}`, () => {
      expect(delays(code, expected.length)).to.deep.equal(expected)
    })
  }

  it('goes on with the longest pause, however often a call has failed', () => {
    expect(retryDelayMs(retryPolicy, { code: 'ABORTED', before: 100_000, leftMs, random: 0 })).to.equal(10_000)
  })

  it('lets chance take up to half of a pause', () => {
    expect(delays('ABORTED', 2, 0.5)).to.deep.equal([375, 750])
    expect(delays('ABORTED', 2, 0.999_999)).to.deep.equal([251, 501])
  })

  it('stops where no time would be left after the pause', () => {
    const last = (leftMs: number) => retryDelayMs(retryPolicy, { code: 'UNAVAILABLE', before: 0, leftMs, random: 0 })
    expect([51, 50, 0, -1].map(last)).to.deep.equal([50, undefined, undefined, undefined])
  })
})
