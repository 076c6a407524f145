import { expect } from 'chai'
import { volumeCallMarginMs } from '../../../lib/defaults.js'
import { Unfinished } from '../../../lib/unfinished.js'
import { limited, type Limits } from '../../../lib/volume/limits.js'
import type { VolumeCallOptions } from '../../../lib/volume/volume.js'
import { gate } from '../../fakes/fake-store.js'
import { Clock, failureOf, listeners, refused, settled, wallClockSet } from './support.js'

/** Work within limits, and what ends it from the outside. */
function bounded(options: VolumeCallOptions & { timeoutMs: number } = { timeoutMs: 60_000 }) {
  const closing = new AbortController()
  const unfinished = new Unfinished()
  const run = <T>(work: (limits: Limits) => Promise<T>): Promise<T> =>
    limited('mounting "v1"', options, closing.signal, unfinished, work)
  return { closing, unfinished, run }
}

/** Never ends by itself; the test looks at its limits. */
function endless() {
  const seen: Limits[] = []
  const work = (limits: Limits): Promise<never> => {
    seen.push(limits)
    return new Promise(() => undefined)
  }
  return { work, limits: () => seen[0]! }
}

describe('limits', () => {
  it('let work through, its answer and its failure', async () => {
    const { run } = bounded()
    expect(await run(async () => 'done')).to.equal('done')
    const failure = new TypeError('broken')
    expect(await run(() => Promise.reject(failure)).catch((thrown: unknown) => thrown)).to.equal(failure)
    const thrown = run(() => {
      throw failure
    })
    expect(await thrown.catch((thrown: unknown) => thrown)).to.equal(failure)
  })

  it('end work after its time, and say what was being done', async () => {
    using clock = new Clock()
    const { run } = bounded({ timeoutMs: 5_000 })
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_TIMEOUT')
    limits().doing = 'NodeStageVolume'
    await clock.pass(4_999)
    expect(limits().signal.aborted).to.equal(false)
    await clock.pass(1)
    const failure = await failing
    expect(failure.message).to.equal('mounting "v1": not within 5000 ms (NodeStageVolume)')
    expect(failure.retryable).to.equal(true)
    expect(limits().signal.reason).to.equal(failure)
  })

  it('end work whose caller gives up, with the reason as the cause', async () => {
    const stop = new AbortController()
    const { run } = bounded({ timeoutMs: 60_000, signal: stop.signal })
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_ABORTED')
    limits().doing = 'waiting for its turn'
    const reason = new Error('enough')
    stop.abort(reason)
    const failure = await failing
    expect(failure.message).to.equal('mounting "v1": aborted (waiting for its turn)')
    expect(failure).to.deep.include({ cause: reason, retryable: false })
    expect(limits().signal.aborted).to.equal(true)
  })

  it('end work whose caller gave it a signal of which the time ran out as they end it themselves', async () => {
    const { run } = bounded({ timeoutMs: 60_000, signal: AbortSignal.timeout(1) })
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_TIMEOUT')
    limits().doing = 'NodeStageVolume'
    const failure = await failing
    expect(failure.message).to.equal('mounting "v1": timed out (NodeStageVolume)')
    expect(failure.retryable).to.equal(true)
    expect(failure.cause).to.have.property('name', 'TimeoutError')
  })

  for (const [how, byMs] of Object.entries({ forward: 3_600_000, back: -3_600_000 }))
    it(`leave a call the time it has, also where the clock is set ${how} meanwhile`, async () => {
      const { closing, run } = bounded({ timeoutMs: 60_000 })
      const { work, limits } = endless()
      const failing = failureOf(run(work), 'ERR_CLOSED')
      {
        using _set = wallClockSet(byMs)
        expect(limits().call.timeoutMs).to.be.within(1_000, 60_000 + volumeCallMarginMs)
      }
      closing.abort()
      await failing
    })

  it('say what is being done as it is when time runs out', async () => {
    using clock = new Clock()
    const { run } = bounded({ timeoutMs: 5_000 })
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_TIMEOUT')
    let there = 'nobody'
    limits().doing = () => `waiting for ${there}`
    there = 'somebody'
    await clock.pass(5_000)
    expect((await failing).message).to.equal('mounting "v1": not within 5000 ms (waiting for somebody)')
  })

  it('end work where everything closes', async () => {
    const { run, closing } = bounded()
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_CLOSED')
    closing.abort()
    expect((await failing).message).to.equal('mounting "v1": the host was closed')
    expect(limits().signal.aborted).to.equal(true)
  })

  it('do not begin what is aborted, or closed, already', async () => {
    let isBegun = false
    const work = async (): Promise<void> => void (isBegun = true)
    const aborted = bounded({ timeoutMs: 60_000, signal: AbortSignal.abort(new Error('enough')) })
    await failureOf(aborted.run(work), 'ERR_ABORTED')
    const closed = bounded()
    closed.closing.abort()
    await failureOf(closed.run(work), 'ERR_CLOSED')
    expect(isBegun).to.equal(false)
  })

  it('are what comes first: nothing that comes later changes the answer', async () => {
    const stop = new AbortController()
    const { run, closing } = bounded({ timeoutMs: 60_000, signal: stop.signal })
    const { work, limits } = endless()
    const failing = failureOf(run(work))
    stop.abort()
    closing.abort()
    expect(await failing).to.include({ code: 'ERR_ABORTED' })
    expect(limits().signal.reason).to.include({ code: 'ERR_ABORTED' })
  })

  it('do not hold what is as good as done', async () => {
    using clock = new Clock()
    const stop = new AbortController()
    const { run, closing } = bounded({ timeoutMs: 1_000, signal: stop.signal })
    const end = gate()
    const working = run(async (limits) => {
      limits.finish()
      await end.opened
      return limits.signal.aborted
    })
    await clock.pass(1_000)
    stop.abort()
    closing.abort()
    end.open()
    expect(await working).to.equal(false)
  })

  it('do not let work be as good as done that was given up before', async () => {
    const stop = new AbortController()
    const { run } = bounded({ timeoutMs: 60_000, signal: stop.signal })
    const { work, limits } = endless()
    const failing = failureOf(run(work), 'ERR_ABORTED')
    stop.abort()
    const failure = await failing
    expect(() => limits().finish()).to.throw(failure.message)
    expect(limits().isFinished).to.equal(false)
  })

  it('give the next call the time that is left and a moment more, so that it is not what ends the work', async () => {
    using clock = new Clock()
    const stop = new AbortController()
    const { run } = bounded({ timeoutMs: 5_000, signal: stop.signal })
    const { work, limits } = endless()
    const failing = failureOf(run(work))
    expect(limits().call).to.deep.equal({ signal: limits().signal, timeoutMs: 5_000 + volumeCallMarginMs })
    await clock.pass(2_000)
    expect(limits().call.timeoutMs).to.equal(3_000 + volumeCallMarginMs)
    await clock.pass(3_000)
    expect(limits().call.timeoutMs).to.equal(volumeCallMarginMs)
    await failing
  })

  it('give it no more time than a call can take', async () => {
    const { run } = bounded({ timeoutMs: 2_147_483_000 })
    expect(await run(async ({ call }) => call.timeoutMs)).to.equal(2_147_483_000)
  })

  it('leave no timer and no listener, however the work ends', async () => {
    using clock = new Clock()
    const stop = new AbortController()
    const options = { timeoutMs: 1_000, signal: stop.signal }
    const { run, closing } = bounded(options)
    const { work, limits } = endless()
    const held = (): number[] => [listeners(stop.signal), listeners(closing.signal)]
    const timedOut = failureOf(run(work), 'ERR_TIMEOUT')
    expect(held()).to.deep.equal([1, 1])
    await clock.pass(1_000)
    await timedOut
    expect([...held(), listeners(limits().signal)]).to.deep.equal([0, 0, 0])

    let ended: Limits | undefined
    await run(async (limits) => void (ended = limits))
    await run(() => Promise.reject(new Error('broken'))).catch(() => undefined)
    expect([...held(), listeners(ended!.signal)]).to.deep.equal([0, 0, 0])
    await clock.pass(1_000)
    expect(ended!.signal.aborted).to.equal(false)

    const aborted = failureOf(run(work), 'ERR_ABORTED')
    stop.abort()
    await aborted
    await failureOf(run(work), 'ERR_ABORTED')
    expect(held()).to.deep.equal([0, 0])
  })

  it('leave work alone that was given up, but whoever closes waits for its end', async () => {
    const { run, closing, unfinished } = bounded()
    const end = gate()
    const failing = failureOf(
      run(() => end.opened),
      'ERR_CLOSED',
    )
    closing.abort()
    await failing
    let isSettled = false
    const settling = unfinished.settled().then(() => (isSettled = true))
    await settled()
    expect(isSettled).to.equal(false)
    end.fail(new Error('too late for anybody to hear'))
    await settling
  })

  it('are refused where they are none, before anything is begun', async () => {
    let isBegun = false
    const within = (options: object): Promise<unknown> =>
      bounded(options as { timeoutMs: number }).run(async () => void (isBegun = true))
    for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 31, '5', undefined, null])
      expect(await refused(() => within({ timeoutMs })), String(timeoutMs)).to.equal('timeoutMs')
    for (const signal of [null, {}, 'now', new AbortController()])
      expect(await refused(() => within({ timeoutMs: 1_000, signal }))).to.equal('signal')
    expect(isBegun).to.equal(false)
    expect(await within({ timeoutMs: 2_147_483_000 })).to.equal(undefined)
  })
})
