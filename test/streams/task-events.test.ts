import { expect } from 'chai'
import { asyncScheduler, defer, ignoreElements, NEVER, tap, type Observable } from 'rxjs'
import { engineAgainMs } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'
import type { TaskLook, TaskSight } from '../../lib/task/task-sight.js'
import { taskEvents } from '../../streams/task-events.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'
import { inTurn } from './support/connection.js'
import { pluginTask } from './support/values.js'

const sight = (id: string, fields: Partial<TaskSight> = {}): TaskSight => ({
  id,
  task: pluginTask({ allocId: id }),
  running: true,
  run: 'first',
  exit: { code: 1, signal: null },
  restarts: false,
  ...fields,
})
const ended = (id: string): TaskSight => sight(id, { running: false })
const all = (...sights: TaskSight[]): TaskLook => ({ kind: 'all', sights })
const one = (id: string, found: TaskSight | undefined = sight(id)): TaskLook => ({ kind: 'one', id, sight: found })

/** `n`: there are none; `1` and `2`: one of them alone, then `a` and `b` at it: it runs, `x` and `y`: it has ended, `g`: it is gone. */
const looks: Record<string, TaskLook> = {
  n: all(),
  '1': all(sight('1')),
  '2': all(ended('1'), sight('2')),
  a: one('1'),
  b: one('2'),
  x: one('1', ended('1')),
  g: { kind: 'one', id: '1', sight: undefined },
}

/** What is told, each with its time, while it is listened to; it never ends by itself. */
function play(helpers: MarbleHelpers, look$: Observable<TaskLook>, until: string): string[] {
  const log: string[] = []
  const told$ = taskEvents(look$, { now: () => asyncScheduler.now() }).pipe(
    tap((event) => {
      expect(event.at).to.equal(asyncScheduler.now())
      const adopted = event.kind === 'started' && event.adopted ? ' adopted' : ''
      log.push(`${event.at}: ${event.task.allocId} ${event.kind}${adopted}`)
    }),
    ignoreElements(),
  )
  helpers.expectObservable(told$, until).toBe('-')
  helpers.flush()
  return log
}

describe('taskEvents', () => {
  it('never: tells nothing where nobody looks', () =>
    marbles((helpers) => {
      const look = helpers.cold<TaskLook>('-')
      expect(play(helpers, look, '^--!')).to.deep.equal([])
      helpers.expectSubscribed(look, '^--!')
    }))

  it('empty: has it looked at again where the looks end, for as long as it takes', () =>
    marbles((helpers) => {
      const look = helpers.cold<TaskLook>('-|')
      expect(play(helpers, look, `^ ${2 * engineAgainMs + 3}ms !`)).to.deep.equal([])
      expect(look.subscriptions.map(({ subscribedFrame }) => subscribedFrame)).to.deep.equal([
        0,
        engineAgainMs + 1,
        2 * (engineAgainMs + 1),
      ])
    }))

  it('one: tells of what runs already', () =>
    marbles((helpers) => {
      const log = play(helpers, helpers.cold('-1', looks), '^--!')
      expect(log).to.deep.equal(['1: 1 prestart', '1: 1 started adopted'])
    }))

  it('many: tells what each look shows that the one before did not', () =>
    marbles((helpers) => {
      const log = play(helpers, helpers.cold('naabxxg', looks), '^ 9ms !')
      expect(log).to.deep.equal([
        '1: 1 prestart',
        '1: 1 started',
        '3: 2 prestart',
        '3: 2 started',
        '4: 1 exited',
        '6: 1 stopped',
      ])
    }))

  it('source error: has all looked at again, and tells what was missed meanwhile', () =>
    marbles((helpers) => {
      const { cold } = helpers
      const look$ = inTurn<Observable<TaskLook>>(cold('1-#', looks), cold('#'), cold('2', looks))
      const log = play(helpers, defer(look$), `^ ${2 * engineAgainMs + 9}ms !`)
      const again = 2 * engineAgainMs + 2
      expect(log).to.deep.equal([
        '0: 1 prestart',
        '0: 1 started adopted',
        `${again}: 1 exited`,
        `${again}: 2 prestart`,
        `${again}: 2 started`,
      ])
    }))

  it('early unsubscribe: leaves the looks, and looks no more', () =>
    marbles((helpers) => {
      const look = helpers.cold<TaskLook>('-#')
      expect(play(helpers, look, '^--!')).to.deep.equal([])
      helpers.expectSubscribed(look, '^!')
    }))

  it('takes no option that there is not', () => {
    expect(() => taskEvents(NEVER, { clock: () => 0 } as object)).to.throw(PlugstreamError, 'clock is no field')
  })

  it('knows nothing of what another subscriber was told', () =>
    marbles((helpers) => {
      const look = helpers.cold('1', looks)
      const told = ['0: 1 prestart', '0: 1 started adopted']
      expect(play(helpers, look, '^!')).to.deep.equal(told)
      expect(play(helpers, look, '^!').map((line) => line.replace(/^\d+/, '0'))).to.deep.equal(told)
    }))
})
