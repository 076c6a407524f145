import { expect } from 'chai'
import { NEVER, delay, map, merge, of, take } from 'rxjs'
import { marbles } from './marbles.js'

describe('the marble helpers', () => {
  it('accept what a stream does: values compared deeply, errors, times, subscriptions', () => {
    marbles(({ cold, hot, expectObservable, expectSubscribed }) => {
      const source = cold('  a-(b|)', { a: { n: [1] }, b: { n: [2] } })
      expectObservable(source.pipe(map(({ n }) => ({ m: n })))).toBe('a-(b|)', { a: { m: [1] }, b: { m: [2] } })
      expectSubscribed(source, '^-!')

      const failing = cold('-#', {}, new Error('down'))
      expectObservable(failing).toBe('-#', {}, new Error('down'))

      const late = hot('--a-')
      expectObservable(late.pipe(take(1), delay(600_000))).toBe('-- 600s (a|)')
      expectSubscribed(late, '^-!')
      expectSubscribed(hot('-'))
    })
  })

  const wrong: Record<string, () => void> = {
    'another time': () => marbles(({ cold, expectObservable }) => expectObservable(cold('-a')).toBe('--a')),
    'another value': () =>
      marbles(({ expectObservable }) => expectObservable(of({ n: [1] })).toBe('(a|)', { a: { n: [2] } })),
    'a value that is missing': () => marbles(({ expectObservable }) => expectObservable(NEVER).toBe('a')),
    'a value too many': () =>
      marbles(({ cold, expectObservable }) => expectObservable(merge(cold('a-a'), NEVER)).toBe('a')),
    'another end': () => marbles(({ cold, expectObservable }) => expectObservable(cold('-|')).toBe('-')),
    'another error': () =>
      marbles(({ cold, expectObservable }) =>
        expectObservable(cold('#', {}, new Error('this'))).toBe('#', {}, new Error('that')),
      ),
    'a subscription that was never made': () =>
      marbles(({ cold, expectSubscribed }) => expectSubscribed(cold('-'), '^')),
    'a subscription that nobody may make': () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const source = cold('-')
        expectObservable(source).toBe('-')
        expectSubscribed(source)
      }),
  }
  for (const [what, test] of Object.entries(wrong)) {
    it(`refuse a wrong diagram: ${what}`, () => expect(test).to.throw(/deep|equal/i))
  }
})
