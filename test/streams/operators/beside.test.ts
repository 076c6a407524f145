import { beside } from '../../../streams/operators/beside.js'
import { marbles } from '../../testing/marbles.js'

describe('beside', () => {
  for (const [other, listened] of [
    ['-', '^---!'],
    ['-a-b-c', '^---!'],
    ['-|', '^!'],
  ] as const)
    it(`passes on work alone, and ends with it, beside ${other}`, () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const other$ = cold(other)
        const work$ = cold('-xy-|')
        expectObservable(beside(other$, work$)).toBe('-xy-|')
        expectSubscribed(work$, '^---!')
        expectSubscribed(other$, listened)
      }))

  it('fails as what goes on beside it fails, and leaves the work', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const work$ = cold('-x----')
      expectObservable(beside(cold('---#'), work$)).toBe('-x-#')
      expectSubscribed(work$, '^--!')
    }))

  it('does not begin what has failed before', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const work$ = cold('x')
      expectObservable(beside(cold('#'), work$)).toBe('#')
      expectSubscribed(work$, '(^!)')
    }))

  it('fails as the work fails, and leaves both when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      expectObservable(beside(cold('-'), cold('-x#'))).toBe('-x#')
      const [other$, work$] = [cold('-'), cold('-')]
      expectObservable(beside(other$, work$), '^-!').toBe('-')
      for (const one$ of [other$, work$]) expectSubscribed(one$, '^-!')
    }))
})
