import { expect } from 'chai'
import { defer, map } from 'rxjs'
import { PlugstreamError } from '../../../lib/errors.js'
import type { AnnouncementVerdict } from '../../../lib/plugin/announcement-note.js'
import type { RegistrarInfo, RegistrarVerdict } from '../../../lib/plugin/announcement.js'
import { asked, telling } from '../../../streams/operators/registrar-calls.js'
import { marbles } from '../../testing/marbles.js'
import { attempts } from '../support/attempts.js'

const info: RegistrarInfo = { type: 'CSIPlugin', name: 'a', endpoint: '', supportedVersions: ['1.0.0'] }
const mute = new PlugstreamError('ERR_SOCKET', 'mute', { retryable: true })
const dead = new PlugstreamError('ERR_SOCKET', 'dead')
const values = { i: { info }, m: mute, d: dead }

describe('asked', () => {
  it('gives the answer, and asks no more', () =>
    marbles((helpers) => {
      const ask$ = helpers.cold('-i-i', { i: info })
      helpers.expectObservable(asked(() => ask$)).toBe('-(i|)', values)
      helpers.expectSubscribed(ask$, '^!')
    }))

  it('says that there is no answer, and asks again after a pause that doubles up to a second', () =>
    marbles((helpers) => {
      const asks$ = attempts(helpers, mute, '#', '#', '#', '#', '#', '#', 'i').pipe(map(() => info))
      helpers.expectObservable(asked(() => asks$)).toBe('m 99ms m 199ms m 399ms m 799ms m 999ms m 999ms (i|)', values)
    }))

  it('asks where nobody can answer after a pause that doubles up to a minute', () =>
    marbles(({ cold, expectObservable }) => {
      const diagram = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `d ${100 * 2 ** n - 1}ms`).join(' ')
      const ask$ = cold<RegistrarInfo>('#', undefined, dead)
      expectObservable(
        asked(() => ask$),
        '^ 200s !',
      ).toBe(`${diagram} d 59999ms d`, values)
    }))

  it('takes a question that fails in the call for one without an answer', () =>
    marbles(({ expectObservable }) => {
      const failing = (): never => {
        throw mute
      }
      expectObservable(asked(failing), '^-!').toBe('m', values)
    }))

  it('asks no more when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const ask$ = cold<RegistrarInfo>('#', undefined, mute)
      expectObservable(
        asked(() => ask$),
        '^ 150ms !',
      ).toBe('m 99ms m', values)
      expectSubscribed(ask$, '(^!)', '100ms (^!)')
    }))
})

describe('telling', () => {
  const ref = { type: 'csi-node', name: 'a', allocId: '/r/a' }
  const verdicts: Record<string, AnnouncementVerdict> = { r: ref, n: dead, m: mute }

  it('tells each verdict as it flows by, and the same but once', () =>
    marbles(({ cold, expectObservable, flush }) => {
      const told: RegistrarVerdict[] = []
      const tell = (verdict: RegistrarVerdict) => defer(() => [told.push(verdict)])
      expectObservable(cold('rrnnmr|', verdicts).pipe(telling(tell))).toBe('r-n-mr|', verdicts)
      flush()
      expect(told).to.deep.equal([
        { registered: true },
        { registered: false, error: 'dead' },
        { registered: false, error: 'mute' },
        { registered: true },
      ])
    }))

  it('tells again that it is registered where that was not heard, and may yet be', () =>
    marbles((helpers) => {
      let told = 0
      const tell = (failure: PlugstreamError) => () =>
        defer(() => (told++, attempts(helpers, failure, told < 3 ? '#' : 's')))
      helpers.expectObservable(helpers.cold('r|', verdicts).pipe(telling(tell(mute)))).toBe('r 299ms |', verdicts)
      helpers.flush()
      expect(told).to.equal(3)
    }))

  it('tells once where nobody hears any more, and that it is not registered', () =>
    marbles(({ cold, expectObservable, flush }) => {
      let told = 0
      const tell = (failure: PlugstreamError) => () => defer(() => (told++, cold('#', undefined, failure)))
      expectObservable(cold('r|', verdicts).pipe(telling(tell(dead)))).toBe('r|', verdicts)
      expectObservable(cold('n|', verdicts).pipe(telling(tell(mute)))).toBe('n|', verdicts)
      flush()
      expect(told).to.equal(2)
    }))

  it('leaves a telling for the next, and when it is left', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const tell$ = cold('-')
      expectObservable(cold('r-n', verdicts).pipe(telling(() => tell$)), '^---!').toBe('r-n', verdicts)
      expectSubscribed(tell$, '^-!', '--^-!')
    }))
})
