import { expect } from 'chai'
import {
  BehaviorSubject,
  defer,
  delay,
  distinctUntilChanged,
  filter,
  ignoreElements,
  map,
  merge,
  of,
  tap,
  throwError,
  type Observable,
} from 'rxjs'
import { defaultTiming } from '../../lib/defaults.js'
import type { LinkState, ProbeAnswer } from '../../lib/plugin/kind.js'
import type { DialAnswer, SocketSight } from '../../lib/plugin/socket.js'
import { connectionStates, type ConnectionPorts } from '../../streams/connection-states.js'
import type { ConnectionState } from '../../streams/values.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'
import { fakeConnection, inTurn, lasting } from './support/connection.js'

const sights: Record<string, SocketSight> = {
  s: { kind: 'socket', identity: 'first' },
  t: { kind: 'socket', identity: 'second' },
  m: { kind: 'missing' },
  n: { kind: 'not-a-socket' },
  d: { kind: 'denied', description: 'EACCES' },
}
const links: Record<string, LinkState> = { i: 'idle', g: 'connecting', c: 'connected', l: 'lost' }
const probes = {
  r: { kind: 'ready' },
  n: { kind: 'not-ready', description: 'warming up' },
  f: { kind: 'failed', description: 'no credentials' },
  s: { kind: 'not-served', description: 'no health service' },
  k: { kind: 'not-csi', description: 'no CSI' },
  u: { kind: 'unreachable', description: 'dropped' },
} satisfies Record<string, ProbeAnswer>
const dialled: Observable<DialAnswer> = lasting({ kind: 'connected' })
const refusal: DialAnswer = { kind: 'refused', description: 'ECONNREFUSED' }

function statesOf(sight$: Observable<SocketSight>, ports: Partial<ConnectionPorts> = {}): Observable<ConnectionState> {
  return connectionStates(
    sight$,
    { connect: () => lasting(fakeConnection()), dial: () => dialled, ...ports },
    defaultTiming,
  )
}

/** The reason and the epoch of each state: what most of these tests are about. */
function told(state$: Observable<ConnectionState>): Observable<string> {
  return state$.pipe(map(({ reason, epoch }) => `${reason} ${epoch}`))
}

/** The milliseconds in which a port was asked. */
function askedAt(port: ReturnType<MarbleHelpers['cold']>): number[] {
  return port.subscriptions.map(({ subscribedFrame }) => subscribedFrame)
}

describe('connectionStates', () => {
  it('never: tells nothing before the path was seen', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const sight = cold<never>('-')
      const connect = cold<never>('-')
      expectObservable(statesOf(sight, { connect: () => connect }), '^---!').toBe('-')
      expectSubscribed(sight, '^---!')
      expectSubscribed(connect)
    }))

  it('empty: ends with a source that saw nothing', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(statesOf(cold('--|'))).toBe('--|')
    }))

  it('one: opens a channel to the socket and tells what the probe comes to', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const connection = fakeConnection()
      const sight = cold('  -s---', sights)
      const connect = cold('c----', { c: connection })
      const healthy: ConnectionState = {
        healthy: true,
        reason: 'ready',
        description: 'ready',
        answers: true,
        epoch: 1,
        connection,
      }
      expectObservable(statesOf(sight, { connect: () => connect }), '^---!').toBe('-h', { h: healthy })
      expectSubscribed(connect, '-^--!')
    }))

  it('many: tells what stands at the path each time it changes', () =>
    marbles(({ cold, expectObservable }) => {
      const sight = cold('                                  m-n-d-s-m', sights)
      expectObservable(told(statesOf(sight)), '^--------!').toBe('m-n-d-s-m', {
        m: 'socket-missing 0',
        n: 'not-a-socket 0',
        d: 'access-denied 0',
        s: 'ready 1',
      })
    }))

  it('source error: passes it on and closes the channel', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const connect = cold('c---', { c: fakeConnection() })
      const state$ = statesOf(cold('s-#', sights), { connect: () => connect })
      expectObservable(told(state$)).toBe('s-#', { s: 'ready 1' })
      expectSubscribed(connect, '^-!')
    }))

  it('port error: a channel that cannot be opened is told, and tried again after a second', () =>
    marbles(({ cold, expectObservable }) => {
      const answers = [
        cold<never>('--#', undefined, new Error('no descriptors left')),
        lasting(fakeConnection()),
      ] as const
      const state$ = statesOf(cold('s', sights), {
        connect: inTurn<ReturnType<ConnectionPorts['connect']>>(...answers),
      })
      expectObservable(state$.pipe(map(({ reason, description }) => [reason, description])), '^ 2s !').toBe(
        '--d 999ms r',
        {
          d: ['disconnected', 'no descriptors left'],
          r: ['ready', 'ready'],
        },
      )
    }))

  it('port error: one that throws where it should answer is no different', () =>
    marbles(({ cold, expectObservable }) => {
      const connect = (): never => {
        throw new Error('no such kind')
      }
      expectObservable(told(statesOf(cold('-s', sights), { connect })), '^ 5s !').toBe('-d', { d: 'disconnected 0' })
    }))

  it('port error: a dial or probe that fails is a look that found nobody, and the looks go on', () =>
    marbles(({ cold, expectObservable }) => {
      const failing = throwError(() => new Error('EMFILE'))
      const dial = inTurn<Observable<DialAnswer>>(failing, failing, failing, failing, dialled)
      const probe = inTurn<Observable<ProbeAnswer>>(failing, failing, failing, failing, lasting(probes.r))
      const connect = (): Observable<ReturnType<typeof fakeConnection>> =>
        lasting(fakeConnection({ link$: lasting('idle'), probe }))
      // dial four times in vain; 20 ms later probe four times in vain; 32 ms later all is well
      expectObservable(told(statesOf(cold('s', sights), { connect, dial })), '^ 1s !').toBe('d 51ms r', {
        d: 'disconnected 0',
        r: 'ready 0',
      })
    }))

  it('early unsubscribe: leaves source, channel, link and probe', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const sight = cold('s------', sights)
      const link = cold(' c------', links)
      const probe = cold<ProbeAnswer>('------r', probes)
      const connect = cold('-c-----', { c: fakeConnection({ link$: link, probe: () => probe }) })
      expectObservable(statesOf(sight, { connect: () => connect }), '^---!').toBe('-')
      expectSubscribed(sight, '  ^---!')
      expectSubscribed(connect, '^---!')
      expectSubscribed(link, '   -^--!')
      expectSubscribed(probe, '  -^--!')
    }))

  describe('what a look comes to', () => {
    const verdicts: [ProbeAnswer, Partial<ConnectionState>][] = [
      [probes.r, { healthy: true, reason: 'ready', answers: true }],
      [probes.n, { healthy: false, reason: 'not-ready', answers: true, description: 'warming up' }],
      [probes.f, { healthy: false, reason: 'probe-failed', answers: true, description: 'no credentials' }],
      [probes.s, { healthy: false, reason: 'not-served', answers: false, description: 'no health service' }],
      [probes.k, { healthy: false, reason: 'not-csi', answers: false, description: 'no CSI' }],
      [probes.u, { healthy: false, reason: 'disconnected', answers: false, description: 'dropped' }],
    ]
    for (const [answer, verdict] of verdicts) {
      it(`is ${verdict.reason} where the probe is answered ${answer.kind}`, () =>
        marbles(({ cold, expectObservable }) => {
          const connection = fakeConnection({ probe: () => lasting(answer) })
          const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
          expectObservable(state$, '^--!').toBe('v', { v: { description: 'ready', epoch: 1, connection, ...verdict } })
        }))
    }

    const dials: [Exclude<DialAnswer['kind'], 'connected'>, ConnectionState['reason']][] = [
      ['missing', 'socket-missing'],
      ['refused', 'socket-refused'],
      ['denied', 'access-denied'],
      ['not-a-socket', 'not-a-socket'],
      ['failed', 'disconnected'],
    ]
    for (const [kind, reason] of dials) {
      it(`is ${reason} where the dial is ${kind}, and nobody is probed`, () =>
        marbles(({ cold, expectObservable, expectSubscribed }) => {
          const probe = cold<never>('-')
          const connection = fakeConnection({ link$: lasting('idle'), probe: () => probe })
          const state$ = statesOf(cold('s', sights), {
            connect: () => lasting(connection),
            dial: () => lasting({ kind, description: 'so it is' }),
          })
          expectObservable(state$, '^--!').toBe('v', {
            v: { healthy: false, reason, answers: false, description: 'so it is', epoch: 0, connection },
          })
          expectSubscribed(probe)
        }))
    }

    it('is asked of the probe alone over a connection that stands', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const dial = cold<never>('-')
        expectObservable(told(statesOf(cold('s', sights), { dial: () => dial })), '^--!').toBe('r', { r: 'ready 1' })
        expectSubscribed(dial)
      }))
  })

  describe('what can be chance', () => {
    it('is a probe that times out: repeated at once, and two in a row count', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const probe = cold<never>('-')
        const connection = fakeConnection({ probe: () => probe })
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
        expectObservable(told(state$), '^ 6010ms !').toBe('6s t', { t: 'probe-timeout 1' })
        flush()
        expect(askedAt(probe)).to.deep.equal([0, 3_000])
      }))

    it('is one timeout while this process stood still: the look that follows at once answers, and nothing is told', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const stalled = cold<ProbeAnswer>('-')
        const probe = inTurn<Observable<ProbeAnswer>>(lasting(probes.r), stalled, lasting(probes.r))
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) })
        expectObservable(told(state$), '^ 10s !').toBe('r', { r: 'ready 1' })
        expectSubscribed(stalled, '4s ^ 2999ms !')
      }))

    it('is no timeout where another call was answered meanwhile', () =>
      marbles(({ cold, expectObservable }) => {
        let answered = 0
        const probe = (): Observable<never> => cold<never>('-').pipe(tap({ subscribe: () => answered++ }))
        const connection = fakeConnection({ answered: () => answered, probe })
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
        expectObservable(told(state$), '^ 9s !').toBe('3s r', { r: 'ready 1' })
      }))

    it('is a call lost on a closing connection', () =>
      marbles(({ cold, expectObservable }) => {
        const probe = inTurn<Observable<ProbeAnswer>>(cold('-u', probes), cold('-r', probes))
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) })
        expectObservable(told(state$), '^---!').toBe('--r', { r: 'ready 1' })
      }))

    it('is also the third of them, since idle connections may be closed faster than they are asked; the fourth counts', () =>
      marbles(({ cold, expectObservable }) => {
        const lost = cold('-u', probes)
        const third = inTurn<Observable<ProbeAnswer>>(lost, lost, lost, cold('-r', probes))
        const fourth = inTurn<Observable<ProbeAnswer>>(lost, lost, lost, lost, cold('-r', probes))
        const of = (probe: () => Observable<ProbeAnswer>): Observable<string> =>
          told(statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) }))
        expectObservable(of(third), '^-----!').toBe('----r', { r: 'ready 1' })
        expectObservable(of(fourth), '^-----!').toBe('----d', { d: 'disconnected 1' })
      }))

    it('is one timeout after a lost call: of two the second counts', () =>
      marbles(({ cold, expectObservable }) => {
        const lost = cold('-u', probes)
        const never = cold<ProbeAnswer>('-')
        const one = inTurn<Observable<ProbeAnswer>>(lost, never, cold('-r', probes))
        const two = inTurn<Observable<ProbeAnswer>>(lost, never, never, cold('-r', probes))
        const of = (probe: () => Observable<ProbeAnswer>): Observable<string> =>
          told(statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) }))
        expectObservable(of(one), '^ 3010ms !').toBe('3002ms r', { r: 'ready 1' })
        expectObservable(of(two), '^ 6010ms !').toBe('6001ms t', { t: 'probe-timeout 1' })
      }))

    it('is a dial without an answer, but not one that is refused', () =>
      marbles(({ cold, expectObservable }) => {
        const connect = (): Observable<ReturnType<typeof fakeConnection>> =>
          lasting(fakeConnection({ link$: lasting('idle') }))
        const unsure = inTurn<Observable<DialAnswer>>(lasting({ kind: 'failed', description: 'no answer' }), dialled)
        const hard = inTurn<Observable<DialAnswer>>(lasting(refusal), dialled)
        expectObservable(told(statesOf(cold('s', sights), { connect, dial: unsure })), '^--!').toBe('r', {
          r: 'ready 0',
        })
        expectObservable(told(statesOf(cold('s', sights), { connect, dial: hard })), '^--!').toBe('x', {
          x: 'socket-refused 0',
        })
      }))
  })

  describe('the beat', () => {
    it('comes 4 s after a healthy look has ended, one look at a time', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const probe = cold<ProbeAnswer>('100ms r', probes)
        const connection = fakeConnection({ probe: () => probe })
        expectObservable(statesOf(cold('s', sights), { connect: () => lasting(connection) }), '^ 9s !').toBe(
          '100ms r',
          {
            r: { healthy: true, reason: 'ready', description: 'ready', answers: true, epoch: 1, connection },
          },
        )
        flush()
        expect(askedAt(probe)).to.deep.equal([0, 4_100, 8_200])
      }))

    it('comes after 20 ms while unhealthy, then ever later up to a second', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const probe = cold<ProbeAnswer>('n', probes)
        const connection = fakeConnection({ probe: () => probe })
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
        expectObservable(told(state$), '^ 5s !').toBe('n', { n: 'not-ready 1' })
        flush()
        const pauses = askedAt(probe).map((at, index, all) => at - (all[index - 1] ?? 0))
        expect(pauses).to.deep.equal([0, 20, 32, 51, 82, 131, 210, 336, 537, 859, 1_000, 1_000])
      }))

    it('is quick again after it was healthy in between', () =>
      marbles(({ cold, expectObservable }) => {
        const not = lasting(probes.n)
        const probe = inTurn<Observable<ProbeAnswer>>(not, not, not, lasting(probes.r), not, lasting(probes.r))
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) })
        expectObservable(told(state$), '^ 5s !').toBe('n 102ms r 3999ms n 19ms r', { n: 'not-ready 1', r: 'ready 1' })
      }))
  })

  describe('a lost connection', () => {
    it('is looked into at once, and no death where the answer comes over a new one', () =>
      marbles(({ cold, expectObservable }) => {
        const link$ = cold('c 99ms lc', links)
        const probe = inTurn<Observable<ProbeAnswer>>(lasting(probes.r), cold('--r', probes))
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ link$, probe })) })
        expectObservable(told(state$), '^ 1s !').toBe('a 101ms b', { a: 'ready 1', b: 'ready 2' })
      }))

    it('is a death where the dial is refused', () =>
      marbles(({ cold, expectObservable }) => {
        const link$ = cold('c 99ms l', links)
        const state$ = statesOf(cold('s', sights), {
          connect: () => lasting(fakeConnection({ link$ })),
          dial: () => lasting(refusal),
        })
        expectObservable(told(state$), '^ 1s !').toBe('a 99ms b', { a: 'ready 1', b: 'socket-refused 1' })
      }))

    it('is looked into once more where it is lost during a look', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const link$ = cold('  c-l', links)
        const first = cold<ProbeAnswer>('----r', probes)
        const second = cold<ProbeAnswer>('-n', probes)
        const probe = inTurn(first, second)
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ link$, probe })) })
        expectObservable(told(state$), '^-----!').toBe('----rn', { r: 'ready 1', n: 'not-ready 1' })
        expectSubscribed(first, '^---!')
        expectSubscribed(second, '----^!')
      }))

    it('is looked into at most once a second, the last loss included', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const link$ = cold('c 99ms l 9ms c 9ms l 9ms c 9ms l', links)
        const probe = cold<ProbeAnswer>('r', probes)
        const connection = fakeConnection({ link$, probe: () => probe })
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
        expectObservable(
          state$.pipe(
            map(({ healthy }) => healthy),
            distinctUntilChanged(),
          ),
          '^ 4s !',
        ).toBe('h', { h: true })
        flush()
        expect(askedAt(probe)).to.deep.equal([0, 100, 1_100])
      }))

    it('of a driver that closes idle ones after 10 ms is never a death, and costs one look a second', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const link$ = new BehaviorSubject<LinkState>('idle')
        let looks = 0
        const probe = (): Observable<ProbeAnswer> =>
          defer(() => {
            looks++
            link$.next('connected')
            return lasting(probes.r)
          })
        const closing$ = link$.pipe(
          filter((link) => link === 'connected'),
          delay(10),
          tap(() => link$.next('lost')),
          ignoreElements(),
        )
        const connect = (): ReturnType<ConnectionPorts['connect']> =>
          merge(of(fakeConnection({ link$, probe })), closing$)
        const healthy$ = statesOf(cold('s', sights), { connect }).pipe(map(({ healthy }) => healthy))
        expectObservable(healthy$.pipe(distinctUntilChanged()), '^ 60s !').toBe('h', { h: true })
        flush()
        expect(looks).to.equal(61)
      }))
  })

  describe('a plugin that tells by itself that it has changed', () => {
    /** The states of a plugin whose probes come to `answers`, one after the other, and which tells what `watch` tells. */
    function watched(
      { cold }: Pick<MarbleHelpers, 'cold'>,
      watch: () => Observable<unknown>,
      answers: string,
      link$: Observable<LinkState> = lasting('connected'),
    ): { state$: Observable<string>; looks: () => number } {
      let looks = 0
      const probe = (): Observable<ProbeAnswer> =>
        defer(() => lasting(probes[(answers[Math.min(looks++, answers.length - 1)] ?? 'r') as keyof typeof probes]))
      const connect = (): ReturnType<ConnectionPorts['connect']> => lasting(fakeConnection({ link$, probe, watch }))
      return { state$: told(statesOf(cold('s', sights), { connect })), looks: () => looks }
    }

    it('never: one that says nothing is found out by the beat', () =>
      marbles((helpers) => {
        const { state$ } = watched(helpers, () => helpers.cold('-'), 'rn')
        helpers.expectObservable(state$, '^ 4005ms !').toBe('r 3999ms n', { r: 'ready 1', n: 'not-ready 1' })
      }))

    it('empty: one that does not tell is not asked to again over the same connection', () =>
      marbles((helpers) => {
        const watch = helpers.cold('|')
        const { state$, looks } = watched(helpers, () => watch, 'r')
        helpers.expectObservable(state$, '^ 9s !').toBe('r', { r: 'ready 1' })
        helpers.expectSubscribed(watch, '(^!)')
        helpers.flush()
        expect(looks()).to.equal(3)
      }))

    it('one: a change is looked at in the moment in which it is told', () =>
      marbles((helpers) => {
        const { state$ } = watched(helpers, () => helpers.cold('100ms t'), 'rn')
        helpers.expectObservable(state$, '^ 110ms !').toBe('r 99ms n', { r: 'ready 1', n: 'not-ready 1' })
      }))

    it('many: each is looked at; of a flood the first, the last, and one in 20 ms', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const looksAt = (watch$: Observable<unknown>): (() => number[]) => {
          const probe = cold<ProbeAnswer>('r', probes)
          const connection = fakeConnection({ probe: () => probe, watch: () => watch$ })
          const state$ = statesOf(cold('s', sights), { connect: () => lasting(connection) })
          expectObservable(told(state$), '^ 400ms !').toBe('r', { r: 'ready 1' })
          return () => askedAt(probe)
        }
        const slow = looksAt(cold('100ms t 99ms t 99ms t'))
        const fast = looksAt(cold(`100ms ${'t'.repeat(50)}`))
        flush()
        expect(slow()).to.deep.equal([0, 100, 200, 300])
        expect(fast()).to.deep.equal([0, 100, 120, 140, 160])
      }))

    it('error: what is cut short is looked into at once, and begun again after a second', () =>
      marbles((helpers) => {
        const { cold, expectObservable, expectSubscribed } = helpers
        const first = cold('100ms #')
        const second = cold('5ms t')
        const { state$ } = watched(helpers, inTurn<Observable<unknown>>(first, second), 'rnr')
        // The look at 100 ms comes to not-ready, which is looked at again from 20 ms on.
        expectObservable(state$, '^ 1200ms !').toBe('r 99ms n 19ms r', { r: 'ready 1', n: 'not-ready 1' })
        expectSubscribed(first, ' ^ 99ms !')
        expectSubscribed(second, '1100ms ^ 100ms !')
      }))

    it('error: one that throws where it should tell is no different', () =>
      marbles((helpers) => {
        const failing = (): never => {
          throw new Error('no stream')
        }
        const { state$, looks } = watched(helpers, failing, 'r')
        helpers.expectObservable(state$, '^ 2500ms !').toBe('r', { r: 'ready 1' })
        helpers.flush()
        expect(looks()).to.equal(1 + 2)
      }))

    it('early unsubscribe: leaves what it tells', () =>
      marbles((helpers) => {
        const watch = helpers.cold('-t---')
        const { state$ } = watched(helpers, () => watch, 'r')
        helpers.expectObservable(state$, '^---!').toBe('r', { r: 'ready 1' })
        helpers.expectSubscribed(watch, '^---!')
      }))

    it('is looked at once more where it tells during a look, which may have seen the time before', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const first = cold<ProbeAnswer>('----r', probes)
        const second = cold<ProbeAnswer>('-n', probes)
        const probe = inTurn(first, second)
        const watch = (): Observable<unknown> => cold('--t')
        const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe, watch })) })
        expectObservable(told(state$), '^-----!').toBe('----rn', { r: 'ready 1', n: 'not-ready 1' })
        expectSubscribed(first, ' ^---!')
        expectSubscribed(second, '----^!')
      }))

    it('is listened to over each new connection, and not before there is one', () =>
      marbles((helpers) => {
        const { cold, expectObservable, expectSubscribed } = helpers
        const link$ = cold('ic 99ms l----c', links)
        const first = cold('-')
        const second = cold('-t')
        const { state$ } = watched(helpers, inTurn<Observable<unknown>>(first, second), 'rrn', link$)
        expectObservable(state$, '^ 199ms !').toBe('r 100ms s 5ms n', {
          r: 'ready 0',
          s: 'ready 1',
          n: 'not-ready 2',
        })
        expectSubscribed(first, ' -^ 99ms !')
        expectSubscribed(second, '106ms ^ 93ms !')
      }))
  })

  describe('the socket', () => {
    it('that another server takes is told as replaced, dialled over a new channel, and the old channel closed first', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const sight$ = cold('s--t', sights)
        const old = cold('   c---', { c: fakeConnection() })
        const fresh = cold(' -c--', { c: fakeConnection({ probe: () => cold('-r', probes) }) })
        const state$ = statesOf(sight$, { connect: inTurn(old, fresh) })
        expectObservable(told(state$), '^------!').toBe('r--x-r', { r: 'ready 1', x: 'socket-replaced 0' })
        expectSubscribed(old, '  ^--!')
        expectSubscribed(fresh, '---^---!')
      }))

    it('of which the same is seen again, as after a chmod, is left alone', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const connect = cold('c', { c: fakeConnection() })
        const state$ = statesOf(cold('s-s-s', sights), { connect: () => connect })
        expectObservable(told(state$), '^----!').toBe('r', { r: 'ready 1' })
        expectSubscribed(connect, '^----!')
      }))

    it('that was gone and is back is asked before anything is told', () =>
      marbles(({ cold, expectObservable }) => {
        const connection = fakeConnection({ probe: () => cold('-r', probes) })
        const state$ = statesOf(cold('m--s', sights), { connect: () => lasting(connection) })
        expectObservable(told(state$), '^-----!').toBe('m---r', { m: 'socket-missing 0', r: 'ready 1' })
      }))

    it('that goes ends a look at once, whatever that would have come to', () =>
      marbles(({ cold, expectObservable, expectSubscribed }) => {
        const probe = cold<ProbeAnswer>('-----r', probes)
        const connection = fakeConnection({ probe: () => probe })
        const state$ = statesOf(cold('s--m', sights), { connect: () => lasting(connection) })
        expectObservable(told(state$), '^--------!').toBe('---m', { m: 'socket-missing 0' })
        expectSubscribed(probe, '^--!')
      }))
  })

  it('says a verdict once, however often it is reached', () =>
    marbles(({ cold, expectObservable }) => {
      const probe = inTurn<Observable<ProbeAnswer>>(
        lasting({ kind: 'failed', description: 'no credentials' }),
        lasting({ kind: 'failed', description: 'no credentials, for the second time' }),
      )
      const state$ = statesOf(cold('s', sights), { connect: () => lasting(fakeConnection({ probe })) })
      expectObservable(told(state$), '^ 1s !').toBe('f', { f: 'probe-failed 1' })
    }))
})
