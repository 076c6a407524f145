import { expect } from 'chai'
import { asyncScheduler, defer, ignoreElements, of, tap, throwError, type Observable } from 'rxjs'
import { engineAgainMs } from '../../lib/defaults.js'
import type { ContainerHint, ContainerSight } from '../../lib/docker/container-sight.js'
import { containerEvents, type ContainerEventPorts } from '../../streams/container-events.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'
import { inTurn } from './support/connection.js'
import { pluginTask } from './support/values.js'

const sight = (id: string, fields: Partial<ContainerSight> = {}): ContainerSight => ({
  id,
  task: pluginTask({ allocId: id }),
  running: true,
  startedAt: 'first',
  pid: undefined,
  exit: { code: 1, signal: null },
  restarts: false,
  ...fields,
})
const ended = (id: string): ContainerSight => sight(id, { running: false })

/** `c`: the engine is listened to; `1` and `2`: something has happened to that container. */
const hints: Record<string, ContainerHint> = {
  c: { kind: 'connected' },
  '1': { kind: 'changed', id: '1' },
  '2': { kind: 'changed', id: '2' },
}

/** What is told, each with its time, while it is listened to; it never ends by itself. */
function play(
  helpers: MarbleHelpers,
  hint$: Observable<ContainerHint>,
  until: string,
  ports: Partial<ContainerEventPorts> = {},
): string[] {
  const log: string[] = []
  const whole = { all: () => of([]), one: (id: string) => of(sight(id)), now: () => asyncScheduler.now(), ...ports }
  const told$ = containerEvents(hint$, whole).pipe(
    tap(({ task, kind, at }) => {
      expect(at).to.equal(asyncScheduler.now())
      log.push(`${at}: ${task.allocId} ${kind}`)
    }),
    ignoreElements(),
  )
  helpers.expectObservable(told$, until).toBe('-')
  helpers.flush()
  return log
}

describe('containerEvents', () => {
  it('never: tells nothing where nothing is hinted at', () =>
    marbles((helpers) => {
      const hint = helpers.cold<ContainerHint>('-')
      expect(play(helpers, hint, '^--!')).to.deep.equal([])
      helpers.expectSubscribed(hint, '^--!')
    }))

  it('empty: listens again where the engine has ended its stream, for as long as it takes', () =>
    marbles((helpers) => {
      const hint = helpers.cold<ContainerHint>('-|')
      expect(play(helpers, hint, `^ ${2 * engineAgainMs + 3}ms !`)).to.deep.equal([])
      expect(hint.subscriptions.map(({ subscribedFrame }) => subscribedFrame)).to.deep.equal([
        0,
        engineAgainMs + 1,
        2 * (engineAgainMs + 1),
      ])
    }))

  it('one: tells of a container that runs already', () =>
    marbles((helpers) => {
      const log = play(helpers, helpers.cold('-c', hints), '^--!', { all: () => of([sight('1')]) })
      expect(log).to.deep.equal(['1: 1 prestart', '1: 1 started'])
    }))

  it('many: tells what each look shows, one after the other', () =>
    marbles((helpers) => {
      const { cold } = helpers
      const looks = inTurn<ContainerSight | undefined>(sight('1'), sight('2'), ended('1'), undefined)
      const one = (): Observable<ContainerSight | undefined> => cold('--(a|)', { a: looks() })
      expect(play(helpers, cold('c12-----1-1', hints), '^ 20ms !', { one })).to.deep.equal([
        '3: 1 prestart',
        '3: 1 started',
        '5: 2 prestart',
        '5: 2 started',
        '10: 1 exited',
        '12: 1 stopped',
      ])
    }))

  it('source error: listens again, and tells what was missed meanwhile', () =>
    marbles((helpers) => {
      const { cold } = helpers
      const hint$ = inTurn<Observable<ContainerHint>>(cold('c-#', hints), cold('c', hints))
      const all = inTurn([sight('1'), sight('2')], [ended('1'), sight('2')])
      const log = play(helpers, defer(hint$), `^ ${engineAgainMs + 9}ms !`, { all: () => of(all()) })
      expect(log).to.deep.equal([
        '0: 1 prestart',
        '0: 1 started',
        '0: 2 prestart',
        '0: 2 started',
        `${engineAgainMs + 2}: 1 exited`,
      ])
    }))

  it('port error: listens again, and looks at all of them anew', () =>
    marbles((helpers) => {
      const all = inTurn([sight('1')], [])
      const log = play(helpers, helpers.cold('c-1', hints), `^ ${engineAgainMs + 3}ms !`, {
        all: () => of(all()),
        one: () => throwError(() => new Error('no answer')),
      })
      const again = engineAgainMs + 2
      expect(log).to.deep.equal(['0: 1 prestart', '0: 1 started', `${again}: 1 exited`, `${again}: 1 stopped`])
    }))

  it('early unsubscribe: leaves the engine, and the look that is under way', () =>
    marbles((helpers) => {
      const hint = helpers.cold<ContainerHint>('c', hints)
      const all = helpers.cold<readonly ContainerSight[]>('---(a|)', { a: [sight('1')] })
      expect(play(helpers, hint, '^-!', { all: () => all })).to.deep.equal([])
      helpers.expectSubscribed(hint, '^-!')
      helpers.expectSubscribed(all, '^-!')
    }))
})
