import { retrySaying } from '../../../streams/operators/retry-saying.js'
import { marbles } from '../../testing/marbles.js'
import { attempts } from '../support/attempts.js'

describe('retrySaying', () => {
  const saying = retrySaying<string, string>(
    (failure) => String(failure),
    (failures) => failures * 2,
  )

  it('passes on what comes, and ends with it', () =>
    marbles((helpers) => {
      helpers.expectObservable(attempts(helpers, 'f', '-a-|').pipe(saying)).toBe('-a-|')
    }))

  it('says each failure, and tries again after a pause that grows', () =>
    marbles((helpers) => {
      const source$ = attempts(helpers, 'f', '#', '#', '-a#', '-|')
      helpers.expectObservable(source$.pipe(saying)).toBe('f-f----af------|')
    }))

  it('stops trying when it is left', () =>
    marbles((helpers) => {
      const source$ = helpers.cold('#', undefined, 'f')
      helpers.expectObservable(source$.pipe(saying), '^---!').toBe('f-f')
      helpers.expectSubscribed(source$, '(^!)', '--(^!)')
    }))
})
