import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { withRetries, type AttemptPorts, type CallBounds } from '../../../lib/csi/retries.js'
import { outcomeOf } from '../../../lib/csi/status.js'
import { PlugstreamError, type ErrorDetails } from '../../../lib/errors.js'
import { inUse } from '../../support/in-use.js'
import { listeners, wallClockSet } from '../volume/support.js'

/** An attempt that answers when the test says so. */
class Attempt {
  readonly answered: Promise<string>
  succeed!: (answer: string) => void
  fail!: (error: unknown) => void

  constructor(
    readonly target: string,
    readonly timeoutMs: number,
  ) {
    this.answered = new Promise((resolve, reject) => {
      this.succeed = resolve
      this.fail = reject
    })
  }
}

const rpcFailure = (grpcCode: string, details: ErrorDetails = {}) =>
  new PlugstreamError('ERR_CSI_RPC', `failed: ${grpcCode}`, { details: { grpcCode, outcome: 'unknown', ...details } })
const lost = () => rpcFailure('UNAVAILABLE', { connectionLost: true })
const refused = () => rpcFailure('UNAVAILABLE', { connectionLost: true, sent: false })

describe('withRetries', () => {
  const rule = { minDelayMs: 1, maxDelayMs: 1, retries: Infinity }
  const policy = { UNAVAILABLE: rule, ABORTED: rule, DEADLINE_EXCEEDED: rule }

  /** A call that has begun, with its attempts as they come. */
  function begin(ports: AttemptPorts<string>, bounds: Partial<CallBounds> = {}) {
    const attempts: Attempt[] = []
    const waiting: ((attempt: Attempt) => void)[] = []
    const all = { timeoutMs: 60_000, attemptMs: 30_000, oneAtATime: true, policy, ...bounds }
    const result = withRetries('NodeStageVolume', ports, all, (target, timeoutMs) => {
      const attempt = new Attempt(target, timeoutMs)
      attempts.push(attempt)
      waiting.shift()?.(attempt)
      return attempt.answered
    })
    result.catch(() => {})
    let taken = 0
    const next = async (): Promise<Attempt> => attempts[taken++] ?? new Promise((resolve) => waiting.push(resolve))
    const failure = async (): Promise<PlugstreamError> =>
      result.then(
        (answer) => expect.fail(`resolved to ${answer}`),
        (error: unknown) => error as PlugstreamError,
      )
    return { attempts, result, next, failure }
  }

  /** A `gone` that does not resolve before it is told to; `asked` resolves when it is asked. */
  function leaving() {
    const olds: string[] = []
    let leave!: () => void
    let ask!: () => void
    const left = new Promise<void>((resolve) => (leave = resolve))
    const asked = new Promise<void>((resolve) => (ask = resolve))
    return { gone: (old: string) => (olds.push(old), ask(), left), asked, leave, olds }
  }

  it('gives the first answer, and fails as the first failure that is for good', async () => {
    const done = begin({ pick: () => 'a' })
    ;(await done.next()).succeed('ok')
    expect(await done.result).to.equal('ok')

    const error = new PlugstreamError('ERR_CSI_RPC', 'no', { details: { grpcCode: 'INTERNAL', outcome: 'final' } })
    const failed = begin({ pick: () => 'a' })
    ;(await failed.next()).fail(error)
    expect(await failed.failure()).to.equal(error)
  })

  it('fails at once as picking fails at first', async () => {
    const none = new PlugstreamError('ERR_PLUGIN_NOT_READY', 'none is connected', { retryable: true })
    const call = begin({
      pick: () => {
        throw none
      },
    })
    expect(await call.failure()).to.equal(none)
    expect(call.attempts).to.deep.equal([])
  })

  it('tries again on the same server as often as there is time', async () => {
    const call = begin({ pick: () => 'a' })
    for (const failure of [lost(), refused(), rpcFailure('ABORTED'), rpcFailure('DEADLINE_EXCEEDED')])
      (await call.next()).fail(failure)
    ;(await call.next()).succeed('ok')
    expect(await call.result).to.equal('ok')
  })

  it('gives an attempt no more time than it may take, and than is left', async () => {
    const call = begin({ pick: () => 'a' }, { timeoutMs: 1_000, attemptMs: 400 })
    const first = await call.next()
    expect(first.timeoutMs).to.equal(400)
    first.fail(lost())
    expect((await call.next()).timeoutMs).to.be.at.most(400)

    const short = begin({ pick: () => 'a' }, { timeoutMs: 100, attemptMs: 400 })
    expect((await short.next()).timeoutMs).to.be.within(1, 100)
  })

  it('waits between two instances while there is none, and says at the end what the last one said', async () => {
    const picks: (string | PlugstreamError)[] = [
      'a',
      new PlugstreamError('ERR_PLUGIN_NOT_READY', 'not yet'),
      new PlugstreamError('ERR_PLUGIN_UNKNOWN', 'not registered'),
      'b',
      new PlugstreamError('ERR_CLOSED', 'the host was closed'),
    ]
    const call = begin({
      pick: () => {
        const pick = picks.length > 1 ? picks.shift()! : picks[0]!
        if (pick instanceof Error) throw pick
        return pick
      },
    })
    ;(await call.next()).fail(refused())
    const second = await call.next()
    expect(second.target).to.equal('b')
    second.fail(lost())
    const failure = await call.failure()
    expect(failure.code).to.equal('ERR_CLOSED')
    expect(outcomeOf(failure)).to.equal('unknown')
    expect(failure.details).to.include({ attempts: 2, rpc: 'NodeStageVolume' })
  })

  describe('where the server is another one', () => {
    it('goes on only once the process of the first is gone', async () => {
      let target = 'a'
      const { gone, asked, leave, olds } = leaving()
      const call = begin({ pick: () => target, gone })
      const first = await call.next()
      target = 'b'
      first.fail(lost())
      await asked
      await turn()
      expect(call.attempts).to.have.length(1)
      expect(olds).to.deep.equal(['a'])
      leave()
      const second = await call.next()
      expect(second.target).to.equal('b')
      second.succeed('ok')
      expect(await call.result).to.equal('ok')
    })

    for (const [who, gone] of [
      ['nobody can tell', undefined],
      ['who should tell fails', () => Promise.reject(new Error('no such process'))],
    ] as const) {
      it(`goes on when the deadline of the first attempt has passed, where ${who}`, async () => {
        let target = 'a'
        const call = begin({ pick: () => target, gone }, { attemptMs: 80 })
        const startedAt = performance.now()
        const first = await call.next()
        target = 'b'
        first.fail(lost())
        const second = await call.next()
        expect(performance.now() - startedAt).to.be.at.least(78)
        expect(second.target).to.equal('b')
        second.succeed('ok')
      })
    }

    it('goes on at once where the first attempt was never sent, is over, or may run twice', async () => {
      for (const [failure, oneAtATime] of [
        [refused(), true],
        [rpcFailure('ABORTED', { outcome: 'final' }), true],
        [lost(), false],
      ] as const) {
        let target = 'a'
        const call = begin({ pick: () => target }, { oneAtATime })
        const first = await call.next()
        target = 'b'
        first.fail(failure)
        expect((await call.next()).target).to.equal('b')
      }
    })

    it('goes to the newest of them after the wait', async () => {
      let target = 'a'
      let leave!: () => void
      const left = new Promise<void>((resolve) => (leave = resolve))
      const call = begin({
        pick: () => target,
        gone: async () => {
          target = 'c'
          leave()
        },
      })
      const first = await call.next()
      target = 'b'
      first.fail(lost())
      await left
      expect((await call.next()).target).to.equal('c')
    })

    it('goes on where a channel was closed in favour of another, and not where it was just closed', async () => {
      const shut = new PlugstreamError('ERR_CLOSED', 'the channel is closed')
      let target = 'a'
      const moved = begin({ pick: () => target })
      const first = await moved.next()
      target = 'b'
      first.fail(shut)
      expect((await moved.next()).target).to.equal('b')

      const closed = begin({ pick: () => 'a' })
      ;(await closed.next()).fail(shut)
      expect(await closed.failure()).to.equal(shut)
    })
  })

  describe('where the caller gives up', () => {
    it('rejects during an attempt, a pause, and the wait for the old process', async () => {
      const longPause = { UNAVAILABLE: { minDelayMs: 60_000, maxDelayMs: 60_000, retries: 1 } }
      for (const where of ['attempt', 'pause', 'wait']) {
        const stop = new AbortController()
        let target = 'a'
        const bounds = { signal: stop.signal, timeoutMs: 600_000, ...(where === 'pause' && { policy: longPause }) }
        const { gone, asked } = leaving()
        const call = begin({ pick: () => target, gone }, bounds)
        const first = await call.next()
        if (where === 'wait') target = 'b'
        if (where !== 'attempt') first.fail(lost())
        await (where === 'wait' ? asked : turn())
        stop.abort()
        if (where === 'attempt')
          first.fail(new PlugstreamError('ERR_ABORTED', 'aborted', { details: { outcome: 'unknown' } }))
        const failure = await call.failure()
        expect(failure.code).to.equal('ERR_ABORTED')
        expect(outcomeOf(failure)).to.equal('unknown')
        expect(call.attempts).to.have.length(1)
      }
    })

    it('says of a signal that timed out that it did', async () => {
      const call = begin(
        { pick: () => 'a' },
        { signal: AbortSignal.timeout(30), policy: { UNAVAILABLE: { ...rule, minDelayMs: 9_000, maxDelayMs: 9_000 } } },
      )
      ;(await call.next()).fail(lost())
      expect((await call.failure()).code).to.equal('ERR_TIMEOUT')
    })
  })

  for (const [how, byMs] of Object.entries({ forward: 3_600_000, back: -3_600_000 }))
    it(`has the time it has, also where the clock is set ${how} meanwhile`, async () => {
      const call = begin({ pick: () => 'a' }, { timeoutMs: 60_000, attemptMs: 60_000 })
      const first = await call.next()
      using _set = wallClockSet(byMs)
      first.fail(lost())
      const second = await call.next()
      expect(second.timeoutMs).to.be.within(1_000, 60_000)
      second.succeed('done')
      expect(await call.result).to.equal('done')
    })

  describe('where nothing will be there any more', () => {
    const longPause = { UNAVAILABLE: { minDelayMs: 60_000, maxDelayMs: 60_000, retries: 9 } }
    const timers = async (): Promise<string[]> => (await inUse()).filter((one) => one === 'Timeout')

    it('ends a pause at once, with why there is nothing to be picked, and leaves no timer', async () => {
      const closing = new AbortController()
      const before = await timers()
      const pick = (): string => {
        if (closing.signal.aborted) throw new PlugstreamError('ERR_CLOSED', 'the host was closed')
        return 'a'
      }
      const call = begin({ pick, closing: closing.signal }, { timeoutMs: 600_000, policy: longPause })
      ;(await call.next()).fail(lost())
      await turn()
      expect(await timers()).to.have.length(before.length + 1)
      closing.abort()
      const failure = await call.failure()
      expect(failure.code).to.equal('ERR_CLOSED')
      expect(outcomeOf(failure)).to.equal('unknown')
      expect(await timers()).to.have.length(before.length)
      expect(listeners(closing.signal)).to.equal(0)
    })

    it('does not begin a pause', async () => {
      const closing = new AbortController()
      const call = begin({ pick: () => 'a', closing: closing.signal }, { timeoutMs: 600_000, policy: longPause })
      const attempt = await call.next()
      closing.abort()
      const failure = lost()
      attempt.fail(failure)
      expect(await call.failure()).to.equal(failure)
      expect(call.attempts).to.have.length(1)
    })

    it('is not listened to after a pause that came to its end', async () => {
      const { signal } = new AbortController()
      const call = begin({ pick: () => 'a', closing: signal })
      ;(await call.next()).fail(lost())
      ;(await call.next()).succeed('done')
      await call.result
      expect(listeners(signal)).to.equal(0)
    })
  })

  it('does not take for settled what an attempt left unknown, unless an answer came', async () => {
    const unsent = { outcome: 'final', sent: false }
    for (const [failure, outcome] of [
      [new PlugstreamError('ERR_CSI_RPC', 'no', { details: { grpcCode: 'INTERNAL', ...unsent } }), 'unknown'],
      [new PlugstreamError('ERR_CSI_UNSUPPORTED', 'not advertised'), 'unknown'],
      [new PlugstreamError('ERR_CSI_RPC', 'no', { details: { grpcCode: 'INTERNAL', outcome: 'final' } }), 'final'],
      [new PlugstreamError('ERR_CSI_PROTOCOL', 'an answer without a volume'), 'final'],
    ] as const) {
      const call = begin({ pick: () => 'a' })
      ;(await call.next()).fail(lost())
      ;(await call.next()).fail(failure)
      expect(outcomeOf(await call.failure()), failure.message).to.equal(outcome)
    }
  })

  it('fails as the last attempt, with the number of them, when there is no time for another', async () => {
    const call = begin({ pick: () => 'a' }, { policy: { UNAVAILABLE: { ...rule, retries: 2 } } })
    for (const failure of [lost(), lost(), lost()]) (await call.next()).fail(failure)
    const failure = await call.failure()
    expect(failure.message).to.equal('failed: UNAVAILABLE (after 3 attempts)')
    expect(failure.details).to.include({ grpcCode: 'UNAVAILABLE', attempts: 3, outcome: 'unknown' })
  })
})
