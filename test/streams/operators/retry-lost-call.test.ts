import { defer } from 'rxjs'
import { PlugstreamError } from '../../../lib/errors.js'
import { retryLostCall } from '../../../streams/operators/retry-lost-call.js'
import { marbles } from '../../testing/marbles.js'
import { attempts } from '../support/attempts.js'

describe('retryLostCall', () => {
  const lost = new PlugstreamError('ERR_CSI_RPC', 'refused', { details: { connectionLost: true } })
  const answered = new PlugstreamError('ERR_CSI_RPC', 'INTERNAL')

  it('makes a call that was lost again at once, until it was made four times', () =>
    marbles((helpers) => {
      const source$ = helpers.cold('-#', undefined, lost)
      helpers.expectObservable(source$.pipe(retryLostCall())).toBe('----#', undefined, lost)
      helpers.expectSubscribed(source$, '^!', '-^!', '--^!', '---^!')
    }))

  it('makes a call that failed otherwise again once', () =>
    marbles((helpers) => {
      const source$ = helpers.cold('-#', undefined, answered)
      helpers.expectObservable(source$.pipe(retryLostCall())).toBe('--#', undefined, answered)
      helpers.expectSubscribed(source$, '^!', '-^!')
    }))

  it('counts the two apart: one that was lost takes nothing from one that ran out of time', () =>
    marbles((helpers) => {
      const late = new PlugstreamError('ERR_CSI_RPC', 'DEADLINE_EXCEEDED')
      const failures = [lost, late, lost]
      const source$ = defer(() => {
        const failure = failures.shift()
        return failure ? helpers.cold('-#', undefined, failure) : helpers.cold('-(a|)')
      })
      helpers.expectObservable(source$.pipe(retryLostCall())).toBe('----(a|)')
    }))

  it('gives what comes in the end', () =>
    marbles((helpers) => {
      const source$ = attempts(helpers, lost, '-#', '-#', '-#', '-(a|)')
      helpers.expectObservable(source$.pipe(retryLostCall())).toBe('----(a|)')
    }))
})
