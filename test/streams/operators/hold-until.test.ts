import { expect } from 'chai'
import { ReplaySubject, Subject, type Observable } from 'rxjs'
import { holdUntil } from '../../../streams/operators/hold-until.js'
import { marbles } from '../../testing/marbles.js'

/** Opens when its source says something, and stays open. */
function gate(source$: Observable<unknown>): Observable<unknown> {
  const open$ = new ReplaySubject<unknown>(1)
  source$.subscribe(open$)
  return open$
}

describe('holdUntil', () => {
  it('holds back what comes too early, and lets pass at once what comes later', () =>
    marbles(({ cold, hot, expectObservable }) => {
      const value$ = cold('      ab------c-|')
      const open$ = gate(hot('   ---o'))
      expectObservable(value$.pipe(holdUntil(open$))).toBe('---(ab)-c-|')
    }))

  it('lets pass what was held back where the source has ended meanwhile', () =>
    marbles(({ cold, hot, expectObservable }) => {
      expectObservable(cold('a|').pipe(holdUntil(gate(hot('---o'))))).toBe('---(a|)')
    }))

  it('ends with a source of which nothing was held back', () =>
    marbles(({ cold, hot, expectObservable }) => {
      expectObservable(cold('-|').pipe(holdUntil(gate(hot('---o'))))).toBe('-|')
    }))

  it('fails as its source fails, or the gate', () =>
    marbles(({ cold, hot, expectObservable }) => {
      expectObservable(cold('a-#').pipe(holdUntil(gate(hot('-----o'))))).toBe('--#')
      expectObservable(cold('a---').pipe(holdUntil(gate(hot('--#'))))).toBe('--#')
    }))

  it('leaves source and gate when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const value = cold('a----')
      const open = cold(' -----')
      expectObservable(value.pipe(holdUntil(open)), '^--!').toBe('-')
      expectSubscribed(value, '^--!')
      expectSubscribed(open, ' ^--!')
    }))

  it('keeps the order also for a value that arrives while those held back are let go', () => {
    const value$ = new Subject<string>()
    const open$ = new ReplaySubject<true>(1)
    const passed: string[] = []
    value$.pipe(holdUntil(open$)).subscribe((value) => {
      passed.push(value)
      if (value === 'a') value$.next('c')
    })
    value$.next('a')
    value$.next('b')
    open$.next(true)
    value$.next('d')
    expect(passed).to.deep.equal(['a', 'b', 'c', 'd'])
  })
})
