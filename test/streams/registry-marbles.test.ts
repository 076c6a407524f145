import { expect } from 'chai'
import { EMPTY, ignoreElements, map, merge, NEVER, of, take, tap, timer, type Observable } from 'rxjs'
import { storeStallMs } from '../../lib/defaults.js'
import type { PlugstreamError } from '../../lib/errors.js'
import type { RegistryChange } from '../../lib/plugin/plugin.js'
import { Registry } from '../../streams/registry.js'
import { fakeStore, type FakeStore } from '../fakes/fake-store.js'
import { marbles } from '../testing/marbles.js'
import { allocs, deregister, register, short } from './registry-values.js'

const changes = {
  a: register('a'),
  b: register('b'),
  c: register('c'),
  v: register('b', { version: '2' }),
  x: deregister('a'),
  y: deregister('b'),
  // What flows is checked as it comes: a source need not be typed.
  n: { kind: 'nonsense' } as unknown as RegistryChange,
}

const events = {
  A: 'registered a, current a',
  B: 'registered b, current b',
  C: 'registered c, current c',
  V: 'updated b, current b',
  X: 'deregistered a, current none',
  Y: 'deregistered b, current a',
  Z: 'deregistered a, current b',
}

const codeOf = map(({ code }: PlugstreamError) => code)

describe('the registry as an Observer, in virtual time', () => {
  let store: FakeStore
  let registry: Registry
  beforeEach(async () => {
    store = fakeStore()
    registry = await Registry.open({ store, now: () => 7, closeTimeoutMs: 0 })
    store.onSave = (batch, keep) => {
      keep(batch)
      return of(undefined)
    }
  })
  afterEach(() => registry.close())

  /** The store takes three frames to save. */
  const slowStore = (): void => {
    store.onSave = (batch, keep) =>
      timer(3).pipe(
        tap(() => keep(batch)),
        ignoreElements(),
      )
  }

  const inShort = (): Observable<string> => registry.event$.pipe(map(short))

  it('is wired by merging what registers and what deregisters', () =>
    marbles(({ hot, expectObservable, expectSubscribed }) => {
      const register$ = hot('  -a--b--v---a-|', changes)
      const deregister$ = hot('--------y-x---x', changes)
      const expected = '       -A--B--VY-XA--X'
      expectObservable(inShort()).toBe(expected, events)
      merge(register$, deregister$).subscribe(registry)
      expectSubscribed(register$, '^------------!')
      expectSubscribed(deregister$, '^--------------')
    }))

  it('is silent for a source that never tells, one that ends, and one that changes nothing', () =>
    marbles(({ hot, expectObservable }) => {
      merge(NEVER, EMPTY, hot('-x-y', changes)).subscribe(registry)
      expectObservable(inShort()).toBe('----')
      expectObservable(registry.problem$).toBe('----')
    }))

  it('goes on after a source that failed and one that ended, and tells of the failure', () =>
    marbles(({ hot, expectObservable }) => {
      expectObservable(inShort()).toBe('               -AB-Y', events)
      expectObservable(registry.problem$.pipe(codeOf)).toBe('--- p', { p: 'ERR_USAGE' })
      hot('-a-#', changes, new Error('lost')).subscribe(registry)
      hot('--b|', changes).subscribe(registry)
      hot('----y', changes).subscribe(registry)
    }))

  it('tells of nonsense, and goes on', () =>
    marbles(({ hot, expectObservable }) => {
      expectObservable(inShort()).toBe('                       -A-B', events)
      expectObservable(registry.problem$.pipe(codeOf)).toBe('  --p-', { p: 'ERR_OPTION_INVALID' })
      hot('-anb', changes).subscribe(registry)
    }))

  it('lets go of a connected source when its subscription ends, and of all when it is closed', () =>
    marbles(({ hot, expectObservable, expectSubscribed }) => {
      const one = hot('   -a-----b', changes)
      const other = hot(' ---b-------c', changes)
      expectObservable(inShort()).toBe('-A-B--------', events)
      const connection = registry.connect(one)
      registry.connect(other)
      timer(5).subscribe(() => connection.unsubscribe())
      timer(9).subscribe(() => void registry.close())
      expectSubscribed(one, '  ^----!')
      expectSubscribed(other, '^--------!')
    }))

  it('tells each event when it is saved, and saves together what waits', () =>
    marbles(({ hot, expectObservable, flush }) => {
      slowStore()
      expectObservable(inShort()).toBe('----A--(BVC)', events)
      hot('-abvc', changes).subscribe(registry)
      flush()
      const batches = store.saves.map((batch) => batch.filter(({ key }) => key.startsWith('plugin/')).length)
      expect(batches).to.deep.equal([1, 3])
    }))

  it('puts a change that a subscriber makes in its turn, behind what waits already', () =>
    marbles(({ hot, expectObservable }) => {
      slowStore()
      const reacting$ = registry.event$.pipe(
        tap(({ kind, plugin }) => kind === 'registered' && plugin.allocId === 'a' && registry.next(changes.x)),
        map(short),
      )
      expectObservable(reacting$).toBe('----A--(BVZ)', events)
      expectObservable(inShort()).toBe('----A--(BVZ)', events)
      hot('-abv', changes).subscribe(registry)
    }))

  it('tells every subscriber of one event before it tells of what one of them causes', () =>
    marbles(({ hot, expectObservable }) => {
      const reacting$ = registry.event$.pipe(
        tap(({ kind, plugin }) => kind === 'registered' && plugin.allocId === 'a' && registry.next(changes.x)),
        map(short),
      )
      expectObservable(reacting$).toBe('---(AXB)', events)
      expectObservable(inShort()).toBe('---(AXB)', events)
      hot('---(ab)', changes).subscribe(registry)
    }))

  it('shows a watcher who is there, then what comes, at whatever moment it begins', () =>
    marbles(({ hot, expectObservable }) => {
      slowStore()
      hot('-abx', changes).subscribe(registry)
      const watched = registry.watch$.pipe(map(short))
      const B = { ...events, a: 'registered a, current a', b: 'registered a, current b' }
      expectObservable(watched).toBe('          ----A--(BZ)', events)
      expectObservable(watched, '  ---^').toBe('----A--(BZ)', events)
      expectObservable(watched, '  -----^').toBe('-----a-(BZ)', B)
      expectObservable(watched, '  --------^').toBe('--------B', events)
    }))

  it('shows all instances now, then after every change', () =>
    marbles(({ hot, expectObservable }) => {
      hot('-ab-x', changes).subscribe(registry)
      const plugins$ = registry.plugins$.pipe(map((all) => allocs(all).join()))
      expectObservable(plugins$).toBe('0ab-x', { 0: '', a: 'a', b: 'a,b', x: 'b' })
      expectObservable(plugins$, '---^').toBe('---bx', { b: 'a,b', x: 'b' })
      expectObservable(plugins$.pipe(take(1)), '---^').toBe('---(b|)', { b: 'a,b' })
    }))

  it('says when the store does not answer, once for each save, and waits for it', () =>
    marbles(({ hot, expectObservable }) => {
      store.onSave = (batch, keep) => timer(storeStallMs + 10).pipe(tap(() => keep(batch)))
      hot('-ab', changes).subscribe(registry)
      expectObservable(registry.problem$.pipe(codeOf)).toBe(`${storeStallMs + 1}ms p ${storeStallMs + 9}ms p`, {
        p: 'ERR_TIMEOUT',
      })
      expectObservable(inShort()).toBe(`${storeStallMs + 11}ms A ${storeStallMs + 9}ms B`, events)
    }))
})
