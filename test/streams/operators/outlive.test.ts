import { concat, EMPTY, timer, ignoreElements } from 'rxjs'
import { outlive } from '../../../streams/operators/outlive.js'
import { marbles } from '../../testing/marbles.js'

describe('outlive', () => {
  it('begins with its first subscriber, and goes on when that has left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('     ---a--b|')
      const result$ = source.pipe(outlive())
      expectObservable(result$, '-^!').toBe('-')
      expectObservable(result$, '-----^').toBe('-----a-b|')
      expectSubscribed(source, '-^------!')
    }))

  it('tells its newest value and its end to whoever comes after it', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('a-b|')
      const result$ = source.pipe(outlive())
      const late$ = concat(timer(9).pipe(ignoreElements()), result$)
      expectObservable(result$).toBe('a-b|')
      expectObservable(late$).toBe('---------(b|)')
      expectSubscribed(source, '^--!')
    }))

  it('tells a failure to all, and does not begin again for it', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('--#')
      const result$ = source.pipe(outlive())
      expectObservable(result$).toBe('--#')
      expectObservable(result$, '-----^').toBe('-----#')
      expectSubscribed(source, '^-!')
    }))

  it('does nothing before somebody subscribes, and ends with a source that is empty', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const source = cold('-a')
      source.pipe(outlive())
      expectSubscribed(source)
      expectObservable(EMPTY.pipe(outlive())).toBe('|')
    }))
})
