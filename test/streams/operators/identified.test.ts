import { expect } from 'chai'
import { BehaviorSubject, combineLatest, ignoreElements, map, merge, tap, throwError, type Observable } from 'rxjs'
import { PlugstreamError } from '../../../lib/errors.js'
import type { PluginIdentity } from '../../../lib/plugin/kind.js'
import type { PluginInfo } from '../../../lib/plugin/plugin.js'
import { identified, type IdentifiedInit } from '../../../streams/operators/identified.js'
import type { ConnectionState } from '../../../streams/values.js'
import { marbles } from '../../testing/marbles.js'
import { fakeConnection, inTurn, lasting } from '../support/connection.js'
import { connectionState, nobodyThere, pluginInfo } from '../support/values.js'

const plugin = pluginInfo()
const newer = pluginInfo({ version: '2.0.0' })
const plugins: Record<string, PluginInfo> = { 1: plugin, 2: newer }
const identities = { 1: { provider: 'ebs.csi', version: '1.0.0' }, 2: { provider: 'ebs.csi', version: '2.0.0' } }
const full = throwError(() => new PlugstreamError('ERR_STORE_WRITE', 'the disk is full'))

const defaults: IdentifiedInit = {
  plugin$: lasting(plugin),
  update: () => {
    throw new Error('the registry is not to be changed')
  },
  unhealthyBeatMs: 1_000,
  probeTimeoutMs: 3_000,
}

/** A healthy state over a connection that says this of itself. */
function answering(identify: () => Observable<Partial<PluginIdentity>>): ConnectionState {
  return connectionState({ connection: fakeConnection({ identify }) })
}

function passing(state$: Observable<ConnectionState>, init: Partial<IdentifiedInit> = {}): Observable<ConnectionState> {
  return state$.pipe(identified({ ...defaults, ...init }))
}

function told(state$: Observable<ConnectionState>): Observable<string> {
  return state$.pipe(map(({ reason }) => reason))
}

/** The registered instance, which `save` changes. */
function registry(): { plugin$: Observable<PluginInfo>; save: (identity: PluginIdentity) => void } {
  const plugin$ = new BehaviorSubject(plugin)
  return { plugin$, save: (identity) => plugin$.next({ ...plugin, ...identity }) }
}

/** The reason and the version it is said of. */
function shown(state$: Observable<ConnectionState>, plugin$: Observable<PluginInfo>): Observable<string> {
  return combineLatest([state$, plugin$]).pipe(map(([{ reason }, { version }]) => `${reason} ${version}`))
}

describe('identified', () => {
  it('takes who answers probes and does not say who it is for hung, after two times `probeTimeoutMs`', () =>
    marbles(({ cold, expectObservable }) => {
      const mute = cold<PluginIdentity>('-')
      const state$ = told(passing(lasting(answering(() => mute)), { probeTimeoutMs: 3 }))
      expectObservable(state$, '^-------!').toBe('------a', { a: 'probe-failed' })
    }))

  it('lets what is not healthy pass as it is, and asks nobody', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const identity = cold<PluginIdentity>('1', identities)
      const states = {
        a: nobodyThere(),
        b: { ...answering(() => identity), healthy: false, reason: 'not-ready' as const },
      }
      expectObservable(passing(cold('a-b', states)), '^---!').toBe('a-b', states)
      expectSubscribed(identity)
    }))

  it('lets a healthy state pass when the plugin has said who it is, once a connection', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const identity = cold<PluginIdentity>('--1', identities)
      const healthy = answering(() => identity)
      const states = { h: healthy, n: { ...healthy, healthy: false, reason: 'not-ready' as const } }
      expectObservable(passing(cold('h----n--h', states)), '^----------!').toBe('--h--n--h', states)
      expectSubscribed(identity, '^-!')
    }))

  it('asks again over a connection made anew, while what was known stands', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const first = cold<PluginIdentity>(' -1', identities)
      const again = cold<PluginIdentity>(' -1', identities)
      const one = answering(inTurn(first, again))
      const states = { a: one, b: { ...one, epoch: 2 } }
      expectObservable(passing(cold('a---b', states)), '^-------!').toBe('-a---b', states)
      expectSubscribed(first, '^!')
      expectSubscribed(again, '----^!')
    }))

  it('drops a question whose connection is no more', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const identity = cold<PluginIdentity>('---1', identities)
      const states = { h: answering(() => identity), x: nobodyThere() }
      expectObservable(passing(cold('h-x', states)), '^----!').toBe('--x', states)
      expectSubscribed(identity, '^-!')
    }))

  it('asks once more where the answer was lost', () =>
    marbles(({ cold, expectObservable }) => {
      const state = answering(inTurn<Observable<PluginIdentity>>(cold('-#'), cold('-1', identities)))
      expectObservable(passing(lasting(state)), '^---!').toBe('--h', { h: state })
    }))

  it('asks every second where it does not say, and tells the reason once meanwhile', () =>
    marbles(({ expectObservable }) => {
      const failing = throwError(() => new Error('no name'))
      const state = answering(inTurn(failing, failing, failing, failing, lasting(identities[1])))
      expectObservable(passing(lasting(state)), '^ 3s !').toBe('x 1999ms h', {
        x: { ...state, healthy: false, reason: 'probe-failed', description: 'no name' },
        h: state,
      })
    }))

  describe('another version', () => {
    it('is told to the registry before the state passes for healthy', () =>
      marbles(({ cold, expectObservable, flush }) => {
        const { plugin$, save } = registry()
        const updates: PluginIdentity[] = []
        const update = (identity: PluginIdentity): Observable<unknown> => {
          updates.push(identity)
          return cold('--a').pipe(tap(() => save(identity)))
        }
        const state$ = cold('a-b', {
          a: answering(() => lasting(identities[1])),
          b: answering(() => cold('-2', identities)),
        })
        expectObservable(shown(passing(state$, { plugin$, update }), plugin$), '^-------!').toBe('a--x-(yh)', {
          a: 'ready 1.0.0',
          x: 'socket-replaced 1.0.0',
          y: 'socket-replaced 2.0.0',
          h: 'ready 2.0.0',
        })
        flush()
        expect(updates).to.deep.equal([identities[2]])
      }))

    it('raises no doubt where nothing passed before', () =>
      marbles(({ cold, expectObservable }) => {
        const { plugin$, save } = registry()
        const update = (identity: PluginIdentity): Observable<unknown> => cold('--a').pipe(tap(() => save(identity)))
        const state = answering(() => cold('-2', identities))
        expectObservable(shown(passing(lasting(state), { plugin$, update }), plugin$), '^-----!').toBe('---h', {
          h: 'ready 2.0.0',
        })
      }))

    it('is healthy though the registry cannot save it, which is tried again', () =>
      marbles(({ cold, expectObservable }) => {
        const { plugin$, save } = registry()
        const turns = inTurn<Observable<unknown>>(full, full, lasting('saved'))
        const update = (identity: PluginIdentity): Observable<unknown> => turns().pipe(tap(() => save(identity)))
        const state = answering(() => cold('-2', identities))
        // refused at once and after 100 ms; saved 200 ms later
        expectObservable(shown(passing(lasting(state), { plugin$, update }), plugin$), '^ 1s !').toBe('-h 299ms s', {
          h: 'ready 1.0.0',
          s: 'ready 2.0.0',
        })
      }))

    it('is as healthy where the registry refuses it for good, and is not told to it again', () =>
      marbles(({ expectObservable, flush }) => {
        let refused = 0
        const update = (): Observable<never> => {
          refused++
          return throwError(() => new PlugstreamError('ERR_OPTION_INVALID', 'no'))
        }
        const state = answering(() => lasting(identities[2]))
        expectObservable(told(passing(lasting(state), { update })), '^ 9s !').toBe('h', { h: 'ready' })
        flush()
        expect(refused).to.equal(1)
      }))

    it('is not told over and over to a registry that makes something else of it', () =>
      marbles(({ expectObservable, flush }) => {
        let updates = 0
        const update = (): Observable<string> => {
          updates++
          return lasting('saved')
        }
        const state = answering(() => lasting(identities[2]))
        expectObservable(told(passing(lasting(state), { update })), '^ 9s !').toBe('h', { h: 'ready' })
        flush()
        expect(updates).to.equal(1)
      }))

    it('that is registered by hand is asked about: no healthy state shows what nobody said', () =>
      marbles(({ cold, hot, expectObservable }) => {
        const plugin$ = hot('1--2', plugins)
        const state = answering(inTurn<Observable<PluginIdentity>>(lasting(identities[1]), cold('-----2', identities)))
        expectObservable(shown(passing(lasting(state), { plugin$ }), plugin$), '^---------!').toBe('a--(xy)-h', {
          a: 'ready 1.0.0',
          x: 'socket-replaced 1.0.0',
          y: 'socket-replaced 2.0.0',
          h: 'ready 2.0.0',
        })
      }))

    it('that is registered by hand gives way to what the plugin says', () =>
      marbles(({ cold, expectObservable }) => {
        const { plugin$, save } = registry()
        const update = (identity: PluginIdentity): Observable<unknown> => cold('-----a').pipe(tap(() => save(identity)))
        const state = answering(() => lasting(identities[1]))
        const byHand$ = cold('--2', plugins).pipe(tap(save), ignoreElements())
        const passed$ = passing(lasting(state), { plugin$, update })
        expectObservable(merge(shown(passed$, plugin$), byHand$), '^---------!').toBe('a-(xxy)(bh)', {
          a: 'ready 1.0.0',
          x: 'socket-replaced 1.0.0',
          y: 'socket-replaced 2.0.0',
          b: 'socket-replaced 1.0.0',
          h: 'ready 1.0.0',
        })
      }))
  })

  it('believes what is registered where a plugin says nothing of itself, and of what it does not say', () =>
    marbles(({ cold, expectObservable }) => {
      const silent = answering(() => lasting({}))
      expectObservable(passing(lasting(silent)), '^--!').toBe('h', { h: silent })
      const saved: PluginIdentity[] = []
      const { plugin$, save } = registry()
      const update = (identity: PluginIdentity): Observable<unknown> => {
        saved.push(identity)
        return cold('-1', plugins).pipe(tap(() => save(identity)))
      }
      const versioned = answering(() => lasting({ version: '2.0.0' }))
      expectObservable(passing(lasting(versioned), { plugin$, update }), '^--!').toBe('-h', { h: versioned })
      expectObservable(cold('--t').pipe(map(() => saved))).toBe('--s', {
        s: [{ provider: 'ebs.csi', version: '2.0.0' }],
      })
    }))

  it('says so where who answers does not know the question', () =>
    marbles(({ expectObservable }) => {
      const unserved = new PlugstreamError('ERR_CSI_UNSUPPORTED', 'no CSI')
      const state = answering(() => throwError(() => unserved))
      expectObservable(told(passing(lasting(state))), '^ 3s !').toBe('x', { x: 'not-csi' })
    }))

  it('fails as the states fail, and leaves all it listens to', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const state = answering(() => identity)
      const identity = cold<PluginIdentity>('---1', identities)
      const updates = cold(' 1----', plugins)
      expectObservable(passing(cold('h-#', { h: state }), { plugin$: updates })).toBe('--#')
      expectSubscribed(updates, ' ^-!')
      expectSubscribed(identity, '^-!')
    }))
})
