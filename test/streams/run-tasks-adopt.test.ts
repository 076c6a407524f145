import { expect } from 'chai'
import { asyncScheduler, ignoreElements, NEVER, of, tap, throwError, type ObservableInput } from 'rxjs'
import { adoptAgainMs } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import { runTasks, type RunDriver, type RunHandle, type RunTasksInit } from '../../streams/run-tasks.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'

const restart = { mode: 'never' } as const
const spec: TaskSpec = { allocId: '1', taskName: 't', command: ['v1'], isolation: 'image', restart }
const stop: TaskOrder = { order: 'stop', allocId: '1', taskName: 't' }
const end = { code: 0, signal: null }
const away = new PlugstreamError('ERR_CONTAINER', 'no engine', { retryable: true })

/** What a runner tells and asks for, in order and with its time; `c` is a spec, `s` the order to stop. */
function play(
  { cold, expectObservable, flush }: MarbleHelpers,
  input: string,
  until: string,
  adopt: (handle: RunHandle) => ObservableInput<RunHandle | undefined>,
  init: RunTasksInit = {},
): string[] {
  const log: string[] = []
  const note = (what: string): void => void log.push(`${asyncScheduler.now()}: ${what}`)
  const handle = (pid: number): RunHandle => ({
    pid,
    exit: cold('-'),
    stop: () => {
      note(`stop ${pid}`)
      return cold('--(e|)', { e: end })
    },
    release: () => note(`release ${pid}`),
  })
  const driver: RunDriver = {
    adopt: () => adopt(handle(1)),
    start: () => {
      note('start')
      return of(handle(2))
    },
  }
  const prepare = (): ObservableInput<{ socketPath: string; env: object; mounts: [] }> => {
    note('prepare')
    return of({ socketPath: '/s', env: {}, mounts: [] })
  }
  const ports = {
    prepare: prepare as never,
    restart$: NEVER,
    waitOnClose: () => note('wait'),
    problem: ({ message }: PlugstreamError) => note(`problem ${message}`),
  }
  const now = (): number => asyncScheduler.now()
  const told$ = runTasks(cold(input, { c: spec, s: stop }), driver, ports, { now, random: () => 0, ...init }).pipe(
    tap((event) =>
      note(
        event.kind === 'started'
          ? `started ${event.pid}${event.adopted ? ' adopted' : ''}`
          : event.kind === 'exited'
            ? `exited ${event.reason}`
            : event.kind,
      ),
    ),
    ignoreElements(),
  )
  expectObservable(told$, until)
  flush()
  return log
}

describe('run tasks that an earlier host has left', () => {
  it('goes on with the run, and prepares and starts nothing', () =>
    marbles((helpers) => {
      const log = play(helpers, 'c-----s', '^ 12ms !', (left) => helpers.cold('--(h|)', { h: left }))
      expect(log).to.deep.equal(['0: prestart', '2: started 1 adopted', '6: stopping', '6: stop 1', '8: release 1', '8: exited undefined', '8: stopped']) // prettier-ignore
    }))

  it('begins as ever where none was left', () =>
    marbles((helpers) => {
      const log = play(helpers, 'c', '^--!', () => of(undefined), { onClose: 'keep' })
      expect(log.slice(0, 4)).to.deep.equal(['0: prestart', '0: prepare', '0: start', '0: started 2'])
    }))

  it('tells a failure of the look for one that stays as that of a start', () =>
    marbles((helpers) => {
      const log = play(helpers, 'c', '^--!', () => throwError(() => new Error('no image')))
      expect(log).to.deep.equal(['0: prestart', '0: exited no image', '0: stopped'])
    }))

  it('looks again where the driver could not, and tells of no end meanwhile', () =>
    marbles((helpers) => {
      const { cold } = helpers
      let looks = 0
      const look = (left: RunHandle): ObservableInput<RunHandle> => (++looks < 3 ? cold('--#', {}, away) : of(left))
      const log = play(helpers, 'c', `^ ${2 * adoptAgainMs + 9}ms !`, look, { onClose: 'keep' })
      const at = 2 * adoptAgainMs + 4
      expect(log.slice(0, 3)).to.deep.equal(['0: prestart', '2: problem no engine', `${at}: started 1 adopted`])
    }))

  it('leaves nothing where it is left while the driver cannot look', () =>
    marbles((helpers) => {
      const log = play(helpers, 'c', '^--!', () => throwError(() => away))
      expect(log).to.deep.equal(['0: prestart', '0: problem no engine', '3: wait'])
    }))

  it('ends a run that is found when the task was ordered to stop', () =>
    marbles((helpers) => {
      const log = play(helpers, 'c-s', '^ 12ms !', (left) => helpers.cold('----(h|)', { h: left }))
      expect(log).to.deep.equal(['0: prestart', '2: stopping', '4: stop 1', '6: release 1', '6: exited undefined', '6: stopped']) // prettier-ignore
    }))

  for (const [onClose, rest] of [
    ['stop', ['1: wait', '4: stop 1', '6: release 1']],
    ['keep', ['1: wait', '4: release 1']],
  ] as const)
    it(`is asked to ${onClose} where it is left before the look is over`, () =>
      marbles((helpers) => {
        const log = play(helpers, 'c', '^!', (left) => helpers.cold('----(h|)', { h: left }), { onClose })
        expect(log).to.deep.equal(['0: prestart', ...rest])
      }))
})
