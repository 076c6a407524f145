import { expect } from 'chai'
import { defer, EMPTY, NEVER, of, Subject, throwError } from 'rxjs'
import { PlugstreamError } from '../../../lib/errors.js'
import { firstValue } from '../../../streams/operators/first-value.js'

/** What a promise is rejected with. */
async function failureOf(promise: Promise<unknown>): Promise<PlugstreamError> {
  const failure = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  return failure as PlugstreamError
}

describe('firstValue', () => {
  it('resolves with the first value, and listens no longer', async () => {
    const value$ = new Subject<string>()
    const value = firstValue(value$, 'waiting', { timeoutMs: 10_000, signal: new AbortController().signal })
    value$.next('a')
    expect(value$.observed).to.equal(false)
    expect(await value).to.equal('a')
  })

  it('takes a value that is there at once, whatever the limit', async () => {
    expect(await firstValue(of('a'), 'waiting', { timeoutMs: 0 })).to.equal('a')
  })

  it('rejects with ERR_TIMEOUT once the limit has passed, and says what was waited for', async () => {
    const value$ = new Subject<string>()
    const failure = await failureOf(firstValue(value$, 'waiting for csi-node ebs', { timeoutMs: 1 }))
    expect(failure).to.include({ code: 'ERR_TIMEOUT', message: 'waiting for csi-node ebs: not within 1 ms' })
    expect(value$.observed).to.equal(false)
  })

  it('rejects with ERR_ABORTED and the reason when the signal aborts, and listens no longer', async () => {
    const value$ = new Subject<string>()
    const controller = new AbortController()
    const value = firstValue(value$, 'waiting', { signal: controller.signal })
    const reason = new Error('changed my mind')
    controller.abort(reason)
    expect(await failureOf(value)).to.include({ code: 'ERR_ABORTED', cause: reason })
    expect(value$.observed).to.equal(false)
  })

  it('rejects with ERR_TIMEOUT and the reason when the time of the signal runs out, now or before', async () => {
    const reason = new DOMException('', 'TimeoutError')
    const controller = new AbortController()
    const value = firstValue(NEVER, 'waiting', { signal: controller.signal })
    controller.abort(reason)
    for (const late of [value, firstValue(NEVER, 'waiting', { signal: controller.signal })])
      expect(await failureOf(late)).to.include({ code: 'ERR_TIMEOUT', message: 'waiting: timed out', cause: reason })
  })

  it('does not even ask where the signal was aborted before', async () => {
    let asked = false
    const value$ = defer(() => {
      asked = true
      return of('a')
    })
    const failure = await failureOf(firstValue(value$, 'waiting', { signal: AbortSignal.abort() }))
    expect(failure.code).to.equal('ERR_ABORTED')
    expect(asked).to.equal(false)
  })

  it('rejects with ERR_CLOSED where the stream ends without a value', async () => {
    expect(await failureOf(firstValue(EMPTY, 'waiting'))).to.include({
      code: 'ERR_CLOSED',
      message: 'waiting: closed meanwhile',
    })
  })

  it('rejects as the stream fails', async () => {
    const failure = new PlugstreamError('ERR_STORE_READ', 'no')
    expect(
      await failureOf(
        firstValue(
          throwError(() => failure),
          'waiting',
        ),
      ),
    ).to.equal(failure)
  })

  for (const timeoutMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
    it(`refuses a limit of ${timeoutMs} ms, which a timer would take for none at all`, async () => {
      const failure = await failureOf(firstValue(NEVER, 'waiting', { timeoutMs }))
      expect(failure).to.include({ code: 'ERR_OPTION_INVALID' })
      expect(failure.details).to.deep.equal({ field: 'timeoutMs' })
    })
  }

  it('refuses what is no signal', async () => {
    const failure = await failureOf(firstValue(NEVER, 'waiting', { signal: {} as AbortSignal }))
    expect(failure.details).to.deep.equal({ field: 'signal' })
  })
})
