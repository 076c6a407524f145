import { expect } from 'chai'
import { firstValueFrom, toArray } from 'rxjs'
import { abortable } from '../../../streams/operators/abortable.js'

describe('abortable', () => {
  it('calls once for each subscription, and not before', async () => {
    let calls = 0
    const call$ = abortable(() => Promise.resolve(++calls))
    expect(calls).to.equal(0)
    expect(await firstValueFrom(call$.pipe(toArray()))).to.deep.equal([1])
    expect(await firstValueFrom(call$.pipe(toArray()))).to.deep.equal([2])
  })

  it('aborts a call whose subscriber leaves, and drops what it settles to', async () => {
    const told: unknown[] = []
    const signals: AbortSignal[] = []
    const settle: (() => void)[] = []
    const pending = (outcome: 'value' | 'failure'): Promise<string> =>
      new Promise((resolve, reject) => {
        settle.push(outcome === 'value' ? () => resolve('late') : () => reject(new Error('late')))
      })
    const listener = { next: (value: unknown) => told.push(value), error: (failure: unknown) => told.push(failure) }
    for (const outcome of ['value', 'failure'] as const) {
      abortable((signal) => {
        signals.push(signal)
        return pending(outcome)
      })
        .subscribe(listener)
        .unsubscribe()
    }
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([true, true])
    for (const end of settle) end()
    await new Promise(setImmediate)
    expect(told).to.deep.equal([])
  })

  it('leaves a call alone that was answered: what it gave may live on', async () => {
    let signal: AbortSignal | undefined
    const call$ = abortable((given) => {
      signal = given
      return Promise.resolve('a resource')
    })
    await firstValueFrom(call$)
    expect(signal?.aborted).to.equal(false)
  })

  it('fails as the call fails, rejected or thrown', async () => {
    const failure = new Error('no')
    const failures: unknown[] = []
    const settled = (call: () => Promise<never>): Promise<void> =>
      new Promise((resolve) => {
        abortable(call).subscribe({
          error: (given) => {
            failures.push(given)
            resolve()
          },
        })
      })
    await settled(() => Promise.reject(failure))
    await settled(() => {
      throw failure
    })
    expect(failures).to.deep.equal([failure, failure])
  })
})
