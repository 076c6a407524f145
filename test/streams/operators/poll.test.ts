import { expect } from 'chai'
import { of, type Observable } from 'rxjs'
import { poll } from '../../../streams/operators/poll.js'
import { marbles } from '../../testing/marbles.js'
import { inTurn } from '../support/connection.js'

const pauseMs = (): number => 5

describe('poll', () => {
  it('looks at once, and again a pause after each look has come to something', () =>
    marbles(({ cold, expectObservable, flush }) => {
      const look = cold('--a')
      expectObservable(
        poll(() => look, { pauseMs }),
        '^ 17ms !',
      ).toBe('--a 6ms a 6ms a')
      flush()
      expect(look.subscriptions.map((log) => [log.subscribedFrame, log.unsubscribedFrame])).to.deep.equal([
        [0, 2],
        [7, 9],
        [14, 16],
      ])
    }))

  it('takes the first value of a look for what it came to', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(
        poll(() => cold('-ab'), { pauseMs }),
        '^-----!',
      ).toBe('-a')
    }))

  it('looks again also where a look came to nothing', () =>
    marbles(({ cold, expectObservable }) => {
      const look = inTurn<Observable<string>>(cold('-|'), cold('a'))
      expectObservable(poll(look, { pauseMs }), '^--------!').toBe('------a')
    }))

  it('pauses by what the look came to', () =>
    marbles(({ cold, expectObservable }) => {
      const look = inTurn<Observable<string>>(cold('a'), cold('b'), cold('c'))
      const pauses: Record<string, number> = { a: 2, b: 6 }
      const polled$ = poll(look, { pauseMs: (last) => pauses[last ?? ''] ?? 100 })
      expectObservable(polled$, '^ 20ms !').toBe('a-b-----c')
    }))

  it('ends the pause when it is asked, and begins a new one after that look', () =>
    marbles(({ cold, hot, expectObservable }) => {
      const ask$ = hot('--x')
      expectObservable(
        poll(() => cold('a'), { pauseMs, ask$ }),
        '^--------!',
      ).toBe('a-a----a')
    }))

  it('looks once more, at once, where it was asked during a look, however often', () =>
    marbles(({ cold, hot, expectObservable }) => {
      const ask$ = hot(' -xx')
      expectObservable(
        poll(() => cold('---a'), { pauseMs, ask$ }),
        '^ 13ms !',
      ).toBe('---a--a')
    }))

  it('looks once where it is asked as it begins', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(
        poll(() => cold('a'), { pauseMs, ask$: of('now') }),
        '^---!',
      ).toBe('a')
    }))

  it('never has two looks at a time', () =>
    marbles(({ cold, hot, expectObservable, flush }) => {
      const look = cold('--a')
      expectObservable(
        poll(() => look, { pauseMs, ask$: hot('-xxxx-x-xx-x') }),
        '^----------!',
      ).toBe('--a-a-a-a-a')
      flush()
      const times = look.subscriptions
      expect(times).to.have.length(6)
      for (const [index, { subscribedFrame }] of times.entries())
        expect(subscribedFrame).to.be.at.least(times[index - 1]?.unsubscribedFrame ?? 0)
    }))

  it('fails as a look fails, or what asks', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(poll(() => cold('-#'), { pauseMs })).toBe('-#')
      expectObservable(poll(() => cold('a'), { pauseMs, ask$: cold('-#') })).toBe('a#')
    }))

  it('leaves look, pause and what asks when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const look = cold('---a')
      const ask = cold(' ----')
      const polled$ = poll(() => look, { pauseMs, ask$: ask })
      expectObservable(polled$, '^-!').toBe('-')
      expectSubscribed(look, '   ^-!')
      expectSubscribed(ask, '    ^-!')
    }))
})
