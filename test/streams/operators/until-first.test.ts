import { defer, EMPTY, of, Subject, tap } from 'rxjs'
import { untilFirst } from '../../../streams/operators/until-first.js'
import { marbles } from '../../testing/marbles.js'

describe('untilFirst', () => {
  it('completes with the first value, which is not passed on', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event$ = cold('--a-b')
      expectObservable(untilFirst(event$)).toBe('--|')
      expectSubscribed(event$, '^-!')
    }))

  it('passes on the work, and waits for it too', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(untilFirst(cold('a'), cold('-x--|'))).toBe('-x--|')
      expectObservable(untilFirst(cold('---a'), cold('-x|'))).toBe('-x-|')
    }))

  it('does not take an end for the event, and fails as it fails', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(untilFirst(cold('-|'))).toBe('-')
      expectObservable(untilFirst(cold('-#'))).toBe('-#')
    }))

  it('hears what the work causes at once', () =>
    marbles(({ expectObservable }) => {
      const event$ = new Subject<void>()
      const work$ = defer(() => of('x').pipe(tap(() => event$.next())))
      expectObservable(untilFirst(event$, work$)).toBe('(x|)')
      expectObservable(untilFirst(EMPTY, EMPTY)).toBe('-')
    }))
})
