import { expect } from 'chai'
import { lastValueFrom, take, toArray } from 'rxjs'
import { eachOf } from '../../../streams/operators/each-of.js'

describe('eachOf', () => {
  async function* upTo(last: number) {
    for (let at = 1; at <= last; at++) yield at
  }

  it('reads once for each subscription, and not before', async () => {
    let opened = 0
    const each$ = eachOf(() => (opened++, upTo(3))).pipe(toArray())
    expect(opened).to.equal(0)
    expect(await lastValueFrom(each$)).to.deep.equal([1, 2, 3])
    expect(await lastValueFrom(each$)).to.deep.equal([1, 2, 3])
    expect(opened).to.equal(2)
  })

  it('completes with an iterable that has nothing, and leaves its signal alone', async () => {
    let signal: AbortSignal | undefined
    expect(await lastValueFrom(eachOf((given) => ((signal = given), upTo(0))).pipe(toArray()))).to.deep.equal([])
    expect(signal?.aborted).to.equal(false)
  })

  it('fails as the iterable fails, in opening it or after some values', async () => {
    const failure = new Error('no')
    const heard: unknown[] = []
    for (const open of [
      () => {
        throw failure
      },
      async function* () {
        yield* upTo(2)
        throw failure
      },
    ])
      await new Promise<void>((resolve) => {
        eachOf<number>(open).subscribe({
          next: (value) => heard.push(value),
          error: (thrown) => {
            heard.push(thrown)
            resolve()
          },
        })
      })
    expect(heard).to.deep.equal([failure, 1, 2, failure])
  })

  it('wakes an iterable that waits when its subscriber leaves, and drops what it ends with', async () => {
    const told: unknown[] = []
    let began!: () => void
    const waiting = new Promise<void>((resolve) => (began = resolve))
    let ended!: () => void
    const end = new Promise<void>((resolve) => (ended = resolve))
    const subscription = eachOf(async function* (signal) {
      yield 1
      try {
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('left')))
          began()
        })
      } finally {
        ended()
      }
    }).subscribe({ next: (value) => told.push(value), error: (failure) => told.push(failure) })
    await waiting
    subscription.unsubscribe()
    await end
    await new Promise(setImmediate)
    expect(told).to.deep.equal([1])
  })

  it('asks for no more once its subscriber has enough', async () => {
    let asked = 0
    let left!: () => void
    const end = new Promise<void>((resolve) => (left = resolve))
    const each$ = eachOf(async function* () {
      try {
        for (;;) yield ++asked
      } finally {
        left()
      }
    })
    expect(await lastValueFrom(each$.pipe(take(2), toArray()))).to.deep.equal([1, 2])
    await end
    expect(asked).to.equal(2)
  })
})
