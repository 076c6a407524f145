import { expect } from 'chai'
import { volumeRetryMaxMs, volumeRetryMs } from '../../../lib/defaults.js'
import { Again } from '../../../lib/volume/again.js'
import { gate, type Gate } from '../../fakes/fake-store.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { Clock, settled } from './support.js'

/** Work that fails until it is told to succeed, and notes when it was begun. */
function worker() {
  const begun: { key: string; at: number }[] = []
  let succeeds = false
  let end: Gate | undefined
  const again = new Again(async (key) => {
    begun.push({ key, at: Date.now() })
    await end?.opened
    if (!succeeds) throw new Error('not yet')
  })
  return {
    again,
    begun,
    succeed: (): void => void (succeeds = true),
    hold: (): Gate => (end = gate()),
  }
}

describe('again', () => {
  let clock: Clock
  beforeEach(() => {
    clock = new Clock()
  })
  afterEach(() => clock[Symbol.dispose]())

  it('does work at once where something has happened, and no more once it has succeeded', async () => {
    const { again, begun, succeed } = worker()
    succeed()
    again.now('a')
    expect(begun).to.deep.equal([{ key: 'a', at: 0 }])
    await clock.pass(10 * volumeRetryMaxMs)
    expect(begun).to.have.length(1)
  })

  it('does work after a pause where that is enough', async () => {
    const { again, begun, succeed } = worker()
    succeed()
    again.later('a')
    again.later('a')
    await clock.pass(volumeRetryMs - 1)
    expect(begun).to.deep.equal([])
    await clock.pass(1)
    expect(begun).to.deep.equal([{ key: 'a', at: volumeRetryMs }])
    await clock.pass(volumeRetryMaxMs)
    expect(begun).to.have.length(1)
  })

  it('pauses twice as long after each failure, up to a limit', async () => {
    const { again, begun, succeed } = worker()
    again.now('a')
    for (let passed = 0; passed < 5 * volumeRetryMaxMs; passed += volumeRetryMs) await clock.pass(volumeRetryMs)
    const pauses = begun.slice(1).map(({ at }, before) => at - begun[before]!.at)
    expect(pauses.slice(0, 8)).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    succeed()
    await clock.pass(volumeRetryMaxMs)
    const { length } = begun
    await clock.pass(5 * volumeRetryMaxMs)
    expect(begun).to.have.length(length)
  })

  it('begins with short pauses again where something has happened, and forgets the pause under way', async () => {
    const { again, begun } = worker()
    again.now('a')
    for (const pause of [1_000, 2_000, 4_000, 4_000]) await clock.pass(pause)
    expect(begun.map(({ at }) => at)).to.deep.equal([0, 1_000, 3_000, 7_000])
    again.now('a')
    await clock.pass(1_000)
    expect(begun.map(({ at }) => at)).to.deep.equal([0, 1_000, 3_000, 7_000, 11_000, 12_000])
    await clock.pass(1_999)
    expect(begun).to.have.length(6)
    again.close()
  })

  it('begins with short pauses after a success', async () => {
    const { again, begun, succeed } = worker()
    again.now('a')
    await clock.pass(1_000)
    succeed()
    await clock.pass(2_000)
    expect(begun).to.have.length(3)
    again.later('a')
    await clock.pass(1_000)
    expect(begun.at(-1)).to.deep.equal({ key: 'a', at: 4_000 })
  })

  for (const [outcome, succeeds] of [
    ['succeeded', true],
    ['failed', false],
  ] as const)
    it(`has one at a time for a key, and once more for all who asked meanwhile, at once, as when it ${outcome}`, async () => {
      const { again, begun, succeed, hold } = worker()
      const end = hold()
      again.now('a')
      for (let asked = 0; asked < 3; asked++) again.now('a')
      again.later('a')
      await clock.pass(volumeRetryMaxMs)
      expect(begun).to.have.length(1)
      const second = hold()
      if (succeeds) succeed()
      end.open()
      await settled()
      expect(begun.map(({ at }) => at)).to.deep.equal([0, volumeRetryMaxMs])
      succeed()
      second.open()
      await clock.pass(volumeRetryMaxMs)
      expect(begun).to.have.length(2)
    })

  it('does once more, after a pause, what is asked for later while it is under way', async () => {
    const { again, begun, succeed, hold } = worker()
    const end = hold()
    again.now('a')
    again.later('a')
    succeed()
    end.open()
    await settled()
    expect(begun).to.have.length(1)
    await clock.pass(volumeRetryMs)
    expect(begun.map(({ at }) => at)).to.deep.equal([0, volumeRetryMs])
    await clock.pass(10 * volumeRetryMaxMs)
    expect(begun).to.have.length(2)
  })

  it('lets no key wait for another', async () => {
    const { again, begun, hold } = worker()
    hold()
    again.now('a')
    again.now('b')
    again.later('c')
    await clock.pass(volumeRetryMs)
    expect(begun.map(({ key }) => key)).to.deep.equal(['a', 'b', 'c'])
    again.close()
  })

  it('begins nothing after it was closed, whatever is asked for, waits or ends', async () => {
    const { again, begun, hold } = worker()
    again.now('failed')
    await settled()
    const end = hold()
    again.now('under way')
    again.now('under way')
    again.later('waiting')
    again.close()
    end.open()
    again.now('late')
    again.later('late')
    await clock.pass(10 * volumeRetryMaxMs)
    expect(begun.map(({ key }) => key)).to.deep.equal(['failed', 'under way'])
    again.close()
  })
})

describe('again, closed', () => {
  it('leaves no timer', async () => {
    const { again } = worker()
    const before = await inUse()
    again.later('a')
    again.now('b')
    await settled()
    expect(await leftSince(before, 0)).to.deep.equal(['Timeout', 'Timeout'])
    again.close()
    expect(await leftSince(before, 0)).to.deep.equal([])
  })
})
