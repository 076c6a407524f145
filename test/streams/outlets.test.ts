import { expect } from 'chai'
import { Subject } from 'rxjs'
import { outlet, type OutletItem } from '../../streams/outlets.js'

/** A counter: the whole is how far it has counted, a change is the number it counts. */
class Counter {
  count = 0
  readonly change$ = new Subject<number>()

  readonly snapshot = (): number => this.count

  next(): void {
    this.change$.next(++this.count)
  }
}

type Item = OutletItem<number, number>

/** An iterator over what an outlet of this counter gives. */
function read(counter: Counter, maxBufferedCount?: number): AsyncIterator<Item, undefined> {
  const { snapshot, change$ } = counter
  const init = { snapshot, change$, ...(maxBufferedCount !== undefined && { maxBufferedCount }) }
  return outlet(init)[Symbol.asyncIterator]() as AsyncIterator<Item, undefined>
}

const over = { done: true, value: undefined }
const snapshot = (value: number, missed = 0): IteratorResult<Item> => ({
  done: false,
  value: { kind: 'snapshot', value, missed },
})
const change = (value: number): IteratorResult<Item> => ({ done: false, value: { kind: 'change', value } })

describe('outlet', () => {
  it('gives the whole as it is now, then each change, in order', async () => {
    const counter = new Counter()
    counter.next()
    const reader = read(counter)
    expect(await reader.next()).to.deep.equal(snapshot(1))
    counter.next()
    counter.next()
    expect(await reader.next()).to.deep.equal(change(2))
    expect(await reader.next()).to.deep.equal(change(3))
  })

  it('subscribes when it is read, for each reader by itself', async () => {
    const counter = new Counter()
    const items = outlet(counter)
    expect(counter.change$.observed).to.equal(false)
    const [one, two] = [items[Symbol.asyncIterator](), items[Symbol.asyncIterator]()]
    await one.next()
    counter.next()
    expect(await two.next()).to.deep.equal(snapshot(1))
    expect(await one.next()).to.deep.equal(change(1))
    await one.return?.()
    counter.next()
    expect(await two.next()).to.deep.equal(change(2))
  })

  it('gives a change to who waits for it, and to several in their order', async () => {
    const counter = new Counter()
    const reader = read(counter)
    await reader.next()
    const waiting = [reader.next(), reader.next()]
    counter.next()
    counter.next()
    expect(await Promise.all(waiting)).to.deep.equal([change(1), change(2)])
  })

  it('gives changes that are undefined, too', async () => {
    const change$ = new Subject<undefined>()
    const reader = outlet({ snapshot: () => undefined, change$ })[Symbol.asyncIterator]()
    await reader.next()
    change$.next(undefined)
    expect(await reader.next()).to.deep.equal({ done: false, value: { kind: 'change', value: undefined } })
  })

  describe('a reader that falls behind', () => {
    it('gets all that fits', async () => {
      const counter = new Counter()
      const reader = read(counter, 3)
      await reader.next()
      for (let i = 0; i < 3; i++) counter.next()
      expect([await reader.next(), await reader.next(), await reader.next()]).to.deep.equal([1, 2, 3].map(change))
    })

    it('gets the whole once more where it does not fit, with how many changes that spared it, and then goes on', async () => {
      const counter = new Counter()
      const reader = read(counter, 3)
      await reader.next()
      for (let i = 0; i < 10; i++) counter.next()
      expect(await reader.next()).to.deep.equal(snapshot(10, 10))
      counter.next()
      expect(await reader.next()).to.deep.equal(change(11))
    })

    it('gets it as it is when it reads, not as it was when it fell behind', async () => {
      const counter = new Counter()
      const reader = read(counter, 1)
      await reader.next()
      for (let i = 0; i < 3; i++) counter.next()
      counter.count = 100
      expect(await reader.next()).to.deep.equal(snapshot(100, 3))
    })

    it('gets it only once for the time before it began', async () => {
      const counter = new Counter()
      const reader = read(counter, 2)
      for (let i = 0; i < 10; i++) counter.next()
      expect(await reader.next()).to.deep.equal(snapshot(10))
    })

    it('keeps at most a thousand changes where nothing is said', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      for (let i = 0; i < 1_000; i++) counter.next()
      expect(await reader.next()).to.deep.equal(change(1))
      counter.next()
      counter.next()
      expect(await reader.next()).to.deep.equal(snapshot(1_002, 1_001))
    })

    it('slows down nobody', async () => {
      const counter = new Counter()
      const [slow, quick] = [read(counter, 2), read(counter, 2)]
      await Promise.all([slow.next(), quick.next()])
      for (let i = 1; i <= 10; i++) {
        counter.next()
        expect(await quick.next()).to.deep.equal(change(i))
      }
      expect(await slow.next()).to.deep.equal(snapshot(10, 10))
    })
  })

  describe('leaving', () => {
    it('is leaving the loop', async () => {
      const counter = new Counter()
      for await (const { kind } of outlet(counter)) {
        expect([kind, counter.change$.observed]).to.deep.equal(['snapshot', true])
        break
      }
      expect(counter.change$.observed).to.equal(false)
    })

    it('ends what is waited for', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      const waiting = [reader.next(), reader.next()]
      expect(await reader.return?.()).to.deep.equal(over)
      expect(await Promise.all(waiting)).to.deep.equal([over, over])
      expect(counter.change$.observed).to.equal(false)
    })

    it('drops what was not read, and nothing is to be read after it', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      counter.next()
      await reader.return?.()
      expect(await reader.next()).to.deep.equal(over)
    })

    it('before the first item subscribes to nothing, neither then nor later', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.return?.()
      expect(await reader.next()).to.deep.equal(over)
      expect(counter.change$.observed).to.equal(false)
    })
  })

  describe('the end', () => {
    it('comes after the items before it', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      counter.next()
      counter.change$.complete()
      expect([await reader.next(), await reader.next(), await reader.next()]).to.deep.equal([change(1), over, over])
    })

    it('comes to who waits', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      const waiting = reader.next()
      counter.change$.complete()
      expect(await waiting).to.deep.equal(over)
    })

    it('of a source that is over gives the whole all the same', async () => {
      const counter = new Counter()
      counter.change$.complete()
      const reader = read(counter)
      expect([await reader.next(), await reader.next()]).to.deep.equal([snapshot(0), over])
    })

    it('that is a failure is thrown after the items before it, once', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      counter.next()
      counter.change$.error(new Error('broken'))
      expect(await reader.next()).to.deep.equal(change(1))
      expect(await failureOf(reader.next())).to.include({ message: 'broken' })
      expect(await reader.next()).to.deep.equal(over)
    })

    it('that is a failure is not thrown at who has left', async () => {
      const counter = new Counter()
      const reader = read(counter)
      await reader.next()
      counter.change$.error(new Error('broken'))
      await reader.return?.()
      expect(await reader.next()).to.deep.equal(over)
    })

    it('is what a snapshot throws, to who waits as to who asks', async () => {
      const change$ = new Subject<number>()
      let broken = false
      const whole = (): number => {
        if (broken) throw new Error('no whole')
        return 0
      }
      const reader = outlet({ snapshot: whole, change$, maxBufferedCount: 0 })[Symbol.asyncIterator]()
      await reader.next()
      broken = true
      const waiting = failureOf(reader.next())
      change$.next(1)
      expect(await waiting).to.include({ message: 'no whole' })
      expect(change$.observed).to.equal(false)
      const second = outlet({ snapshot: whole, change$ })[Symbol.asyncIterator]()
      expect(await failureOf(second.next())).to.include({ message: 'no whole' })
      expect(change$.observed).to.equal(false)
    })
  })
})

/** What a promise is rejected with. */
async function failureOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => {
      throw new Error('it was not rejected')
    },
    (failure: unknown) => failure as Error,
  )
}
