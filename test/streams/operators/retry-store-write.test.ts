import { PlugstreamError } from '../../../lib/errors.js'
import { retryStoreWrite } from '../../../streams/operators/retry-store-write.js'
import { marbles } from '../../testing/marbles.js'
import { attempts } from '../support/attempts.js'

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
