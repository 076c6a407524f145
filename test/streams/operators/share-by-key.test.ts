import { expect } from 'chai'
import { NEVER, Observable, of, throwError } from 'rxjs'
import { shareByKey } from '../../../streams/operators/share-by-key.js'
import { marbles } from '../../testing/marbles.js'

const own = (key: string): string => key

describe('shareByKey', () => {
  it('runs once for all who ask for one key, from the first of them to the last', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('a--b--c--')
      const shared = shareByKey(own, () => source)
      expectObservable(shared('one'), '^----!').toBe('a--b')
      expectObservable(shared('one'), '--^----!').toBe('--ab--c')
      expectSubscribed(source, '^------!')
    }))

  it('gives each key its own', () =>
    marbles(({ cold, expectObservable }) => {
      const shared = shareByKey(own, (key) => cold('-a', { a: key }))
      expectObservable(shared('one'), '^--!').toBe('-a', { a: 'one' })
      expectObservable(shared('two'), '^--!').toBe('-a', { a: 'two' })
    }))

  it('begins anew for one who comes after all have left, also in the same turn', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('a-----')
      const shared = shareByKey(own, () => source)
      expectObservable(shared('one'), '^--!').toBe('a')
      expectObservable(shared('one'), '---^--!').toBe('---a')
      expectSubscribed(source, '^--!', '---^--!')
    }))

  it('begins anew after an end or a failure', () =>
    marbles(({ cold, expectObservable }) => {
      const ending = shareByKey(own, () => cold('a-|'))
      expectObservable(ending('one')).toBe('a-|')
      expectObservable(ending('one'), '---^').toBe('---a-|')
      const failing = shareByKey(own, () => cold('a-#'))
      expectObservable(failing('one')).toBe('a-#')
      expectObservable(failing('one'), '---^').toBe('---a-#')
    }))

  it('does not make anything before it is subscribed to', () => {
    let made = 0
    const shared = shareByKey(own, () => {
      made++
      return NEVER
    })
    const one$ = shared('one')
    expect(made).to.equal(0)
    one$.subscribe().unsubscribe()
    expect(made).to.equal(1)
  })

  it('keeps nothing of a key nobody follows: not after an end, a failure, or a maker that throws', () => {
    const made: string[] = []
    const outcomes: Record<string, () => Observable<number>> = {
      ended: () => of(1),
      failed: () => throwError(() => new Error('no')),
      thrown: () => {
        throw new Error('no')
      },
      left: () => NEVER,
    }
    const shared = shareByKey(own, (key) => {
      made.push(key)
      return outcomes[key]?.() ?? NEVER
    })
    for (const key of Object.keys(outcomes)) {
      for (let time = 0; time < 2; time++)
        shared(key)
          .subscribe({ error: () => undefined })
          .unsubscribe()
    }
    expect(made).to.deep.equal(['ended', 'ended', 'failed', 'failed', 'thrown', 'thrown', 'left', 'left'])
  })
})
