import { defer, type Observable } from 'rxjs'
import { PlugstreamError } from '../../../lib/errors.js'
import { retrySaying } from '../../../streams/operators/retry-saying.js'
import { retryStoreWrite } from '../../../streams/operators/retry-store-write.js'
import { marbles, type MarbleHelpers } from '../../testing/marbles.js'

/** Each subscription gets the next diagram; the last one again for more. */
function attempts({ cold }: MarbleHelpers, failure: unknown, ...diagrams: string[]): Observable<string> {
  let made = 0
  return defer(() => cold(diagrams[Math.min(made++, diagrams.length - 1)] ?? '', undefined, failure))
}

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

describe('retryStoreWrite', () => {
  const down = new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')

  it('tries again after a pause that doubles, up to a limit', () =>
    marbles((helpers) => {
      const source$ = helpers.cold('#', undefined, down)
      helpers.expectObservable(source$.pipe(retryStoreWrite()), '^ 20s !').toBe('-')
      const at = [0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300]
      helpers.expectSubscribed(source$, ...at.map((ms) => (ms ? `${ms}ms (^!)` : '(^!)')))
    }))

  it('gives what comes in the end', () =>
    marbles((helpers) => {
      helpers.expectObservable(attempts(helpers, down, '#', '#', '-(a|)').pipe(retryStoreWrite())).toBe('301ms (a|)')
    }))

  it('passes any other failure on at once', () =>
    marbles((helpers) => {
      const refused = new PlugstreamError('ERR_OPTION_INVALID', 'no')
      const source$ = attempts(helpers, refused, '-#')
      helpers.expectObservable(source$.pipe(retryStoreWrite())).toBe('-#', undefined, refused)
    }))
})
