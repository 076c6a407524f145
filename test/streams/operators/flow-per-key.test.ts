import { expect } from 'chai'
import { concatMap, delay, EMPTY, map, mergeMap, of, Subject, take, takeWhile, type Observable } from 'rxjs'
import { flowPerKey } from '../../../streams/operators/flow-per-key.js'
import { marbles } from '../../testing/marbles.js'

const key = (value: string): string => value.toLowerCase()

describe('flowPerKey', () => {
  it('never says anything where nothing flows in, and ends with an empty source', () =>
    marbles(({ cold, expectObservable }) => {
      const same = flowPerKey(key, (value$: Observable<string>) => value$)
      expectObservable(cold('-').pipe(same)).toBe('-')
      expectObservable(cold('|').pipe(same)).toBe('|')
    }))

  it('gives each key a flow of its own, with every value from the first on', () =>
    marbles(({ cold, expectObservable }) => {
      const numbered = flowPerKey(key, (value$: Observable<string>) =>
        value$.pipe(map((v, index) => v + String(index))),
      )
      const source$ = cold('(aab)-ab', undefined)
      expectObservable(source$.pipe(numbered)).toBe('(ABC)-DE', { A: 'a0', B: 'a1', C: 'b0', D: 'a2', E: 'b1' })
    }))

  it('begins a new flow with the first value after the end of one', () =>
    marbles(({ cold, expectObservable }) => {
      const twice = flowPerKey(key, (value$: Observable<string>) =>
        value$.pipe(
          take(2),
          map((v, index) => v + String(index)),
        ),
      )
      expectObservable(cold('aaaaa').pipe(twice)).toBe('ABABA', { A: 'a0', B: 'a1' })
    }))

  it('keeps a flow that has work left after its last value, and gives it what comes meanwhile', () =>
    marbles(({ cold, expectObservable }) => {
      const slow = flowPerKey(key, (value$: Observable<string>) =>
        value$.pipe(
          concatMap((v, index) => of(v + String(index)).pipe(delay(3))),
          takeWhile((v) => v !== 'A1', true),
        ),
      )
      expectObservable(cold('aA--a--------a').pipe(slow)).toBe('---0--1---------0', { 0: 'a0', 1: 'A1' })
    }))

  it('ends with its source when the flows have', () =>
    marbles(({ cold, expectObservable }) => {
      const late = flowPerKey(key, (value$: Observable<string>) => value$.pipe(delay(3)))
      expectObservable(cold('ab|').pipe(late)).toBe('---a(b|)')
    }))

  it('passes an error of the source on to everybody', () =>
    marbles(({ cold, expectObservable }) => {
      const same = flowPerKey(key, (value$: Observable<string>) => value$)
      expectObservable(cold('a#').pipe(same)).toBe('a#')
    }))

  it('leaves the source and the flows when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const [source$, work$] = [cold('a-b'), cold('-')]
      const busy = flowPerKey(key, (value$: Observable<string>) => value$.pipe(mergeMap(() => work$)))
      expectObservable(source$.pipe(busy), '^---!').toBe('-')
      expectSubscribed(source$, '^---!')
      expectSubscribed(work$, '^---!', '--^-!')
    }))

  it('loses nothing of hundreds of keys', () => {
    const heard: string[] = []
    const source$ = new Subject<string>()
    const running = source$.pipe(flowPerKey(key, (value$) => value$)).subscribe((value) => heard.push(value))
    const sent = Array.from({ length: 1_000 }, (_, index) => `k${index % 500}`)
    sent.forEach((value) => source$.next(value))
    running.unsubscribe()
    expect(heard).to.eql(sent)
  })

  it('takes a flow that ends as it begins', () =>
    marbles(({ cold, expectObservable }) => {
      const none = flowPerKey(key, () => EMPTY)
      expectObservable(cold('aa|').pipe(none)).toBe('--|')
    }))
})
