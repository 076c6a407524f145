import { overdue } from '../../../streams/operators/overdue.js'
import { marbles } from '../../testing/marbles.js'

const tenOrThirty = overdue<string>({ first: '?', asksForPatience: (v) => v === 'n', timeoutMs: 10, patienceMs: 30 })

describe('overdue', () => {
  it('gives what was known first where nothing flows in', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-').pipe(tenOrThirty)).toBe('10ms (f|)', { f: '?' })
    }))

  it('gives the last value after the time, counted from the beginning', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('a----b').pipe(tenOrThirty)).toBe('10ms (b|)')
    }))

  it('waits longer for a value that asks for patience', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('---n').pipe(tenOrThirty)).toBe('30ms (n|)')
    }))

  it('counts the time anew when patience is no more asked for', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('n 14ms a').pipe(tenOrThirty)).toBe('25ms (a|)')
    }))

  it('does not let patience be asked for for ever by turns', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('n 7ms a 7ms n 7ms a 7ms n 7ms a 7ms n').pipe(tenOrThirty)).toBe('32ms (n|)')
    }))

  it('leaves the source when it was told', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source$ = cold('a')
      expectObservable(source$.pipe(tenOrThirty)).toBe('10ms (a|)')
      expectSubscribed(source$, '^ 9ms !')
    }))
})
