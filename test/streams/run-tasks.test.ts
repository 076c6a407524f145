import { expect } from 'chai'
import { asyncScheduler, concat, ignoreElements, map, merge, NEVER, of, share, shareReplay, Subject, tap, throwError, type Observable, type ObservableInput } from 'rxjs' // prettier-ignore
import type { PlugstreamError } from '../../lib/errors.js'
import type { TaskExit, TaskSpec } from '../../lib/task/driver.js'
import type { TaskRunState } from '../../lib/task/task-run-state.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { RestartRequest, TaskEvent, TaskResources } from '../../lib/task/task.js'
import { runTasks, type RunHandle, type RunPorts, type RunTasksInit } from '../../streams/run-tasks.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'

const restart = { mode: 'on-failure', attempts: 2, minDelayMs: 10, maxDelayMs: 100, factor: 3, jitter: 0 } as const
const one: TaskSpec = { allocId: '1', taskName: 't', command: ['v1'], isolation: 'none', stopGraceMs: 50, restart }
const two: TaskSpec = { ...one, allocId: '2' }
const newer: TaskSpec = { ...one, command: ['v2'] }
const order = (what: TaskOrder['order'], { allocId, taskName } = one): TaskOrder => ({ order: what, allocId, taskName })
const request = (task: TaskSpec): RestartRequest => ({ task, reason: 'socket-missing', message: 'no socket' })

const resources: TaskResources = { socketPath: '/s', env: {}, mounts: [] }
const exits: Readonly<Record<string, TaskExit>> = {
  o: { code: 0, signal: null },
  c: { code: 1, signal: null },
  t: { code: null, signal: 'SIGTERM' },
}

/** An event in words: `1 started 7` under pid 7; `1 exited 1 +` with code 1 and a restart to come. */
function words(event: TaskEvent): string {
  const { allocId, command } = event.task as TaskSpec
  const said = [allocId, event.kind]
  if (event.kind === 'prestart' && command[0] !== 'v1') said.push(command[0])
  if (event.kind === 'started') said.push(String(event.pid))
  if (event.kind === 'exited') {
    said.push(String(event.code ?? event.signal ?? 'nowhere'))
    if (event.willRestart) said.push('+')
    if (event.reason !== undefined) said.push(`(${event.reason})`)
  }
  expect(event.at).to.equal(asyncScheduler.now())
  return said.join(' ')
}

/** What a start comes to. */
type Start = (machine: Machine) => ObservableInput<RunHandle>

/** A run that ends by itself as `lives` says from its begin on, and takes as long as `ends` says when it is stopped. */
const run =
  (lives = '-', ends = '--t'): Start =>
  (machine) =>
    of(machine.handle(lives, ends))

/** A task runner on ports of the test's. Everything it tells and asks for is in `log`, in order and with its time. */
class Machine {
  readonly log: string[] = []
  readonly states: TaskRunState[] = []
  readonly awaited: Promise<unknown>[] = []
  readonly #starts: Start[]
  readonly #ports: Partial<RunPorts>
  #pids = 0

  constructor(
    readonly helpers: MarbleHelpers,
    starts: Start[] = [],
    ports: Partial<RunPorts> = {},
  ) {
    this.#starts = starts
    this.#ports = ports
  }

  note(what: string): void {
    this.log.push(`${asyncScheduler.now()}: ${what}`)
  }

  handle(lives = '-', ends = '--t'): RunHandle {
    const { cold } = this.helpers
    const pid = ++this.#pids
    return {
      pid,
      exit: cold(lives, exits).pipe(shareReplay(1)),
      stop: (graceMs) => {
        this.note(`stop ${pid} within ${graceMs}`)
        return cold(ends, exits)
      },
      release: () => this.note(`release ${pid}`),
    }
  }

  events(input$: Observable<TaskSpec | TaskOrder>, init: RunTasksInit = {}): Observable<TaskEvent> {
    const start = (spec: TaskSpec): ObservableInput<RunHandle> => {
      this.note(`start ${spec.allocId}`)
      return (this.#starts.shift() ?? run())(this)
    }
    const ports: RunPorts = {
      prepare: () => of(resources),
      restart$: NEVER,
      waitOnClose: (work) => this.awaited.push(work),
      ...this.#ports,
    }
    const state = { next: (state: TaskRunState) => void this.states.push(state) }
    const now = (): number => asyncScheduler.now()
    return runTasks(input$, { start }, ports, { now, random: () => 0, state, ...init })
  }

  /** Runs until `until` (a diagram of the subscription), expects `end` of the output, and gives the log. */
  play(
    input$: Observable<TaskSpec | TaskOrder>,
    { until, end = '-', error, init }: { until?: string; end?: string; error?: Error; init?: RunTasksInit } = {},
  ): string[] {
    const told$ = this.events(input$, init).pipe(
      tap((event) => this.note(words(event))),
      ignoreElements(),
    )
    this.helpers.expectObservable(told$, until).toBe(end, {}, error)
    this.helpers.flush()
    return this.log
  }

  phases(): string[] {
    return this.states.map(({ phase, reason }) => (reason === undefined ? phase : `${phase}: ${reason}`))
  }
}

describe('run tasks', () => {
  it('never: waits', () =>
    marbles((helpers) => {
      const source = helpers.cold<TaskSpec>('-')
      expect(new Machine(helpers).play(source, { until: '--!' })).to.deep.equal([])
      helpers.expectSubscribed(source, '^-!')
    }))

  it('empty: completes with its source', () =>
    marbles((helpers) => {
      expect(new Machine(helpers).play(helpers.cold('--|'), { end: '--|' })).to.deep.equal([])
    }))

  it('one: prepares it, starts it, clears what it leaves, and completes when it has ended', () =>
    marbles((helpers) => {
      const { cold, expectSubscribed } = helpers
      const prepare = cold('--r', { r: resources })
      const begins = cold('---h')
      const start: Start = (machine) => begins.pipe(map(() => machine.handle('-----o', '--o')))
      const machine = new Machine(helpers, [start], { prepare: () => prepare })
      const source = cold('-(a|)', { a: one })
      expect(machine.play(source, { end: '-------------|' })).to.deep.equal([
        '1: 1 prestart',
        '3: start 1',
        '6: 1 started 1',
        '11: 1 exited 0',
        '11: stop 1 within 50',
        '13: release 1',
        '13: 1 stopped',
      ])
      expect(machine.phases()).to.deep.equal(['starting', 'running', 'stopping: exited with code 0', 'stopped: exited with code 0']) // prettier-ignore
      expectSubscribed(source, '^!')
      expectSubscribed(prepare, '-^-!')
      expectSubscribed(begins, '---^--!')
    }))

  it('many: each lives by itself, and the failure of one disturbs no other', () =>
    marbles((helpers) => {
      const machine = new Machine(helpers, [run('--c', 'c'), run('-----o', 'o'), run('-', 't')])
      const source = helpers.hot('a-b-----------------s|', { a: one, b: two, s: order('stop') })
      expect(machine.play(source, { end: '---------------------|' })).to.deep.equal([
        '0: 1 prestart',
        '0: start 1',
        '0: 1 started 1',
        '2: 2 prestart',
        '2: start 2',
        '2: 2 started 2',
        '2: 1 exited 1 +',
        '2: stop 1 within 50',
        '2: release 1',
        '7: 2 exited 0',
        '7: stop 2 within 50',
        '7: release 2',
        '7: 2 stopped',
        '12: 1 prestart',
        '12: start 1',
        '12: 1 started 3',
        '20: 1 stopping',
        '20: stop 3 within 50',
        '20: release 3',
        '20: 1 exited SIGTERM',
        '20: 1 stopped',
      ])
    }))

  it('many: follows what its host orders like what flows in, and completes when the host has no more to order', () =>
    marbles((helpers) => {
      const order$ = helpers.hot('--bs-|', { b: two, s: order('stop') })
      const machine = new Machine(helpers, [run('-', 't'), run('--o', 'o')], { order$ })
      expect(machine.play(helpers.cold('(a|)', { a: one }), { end: '-----|' })).to.deep.equal([
        '0: 1 prestart',
        '0: start 1',
        '0: 1 started 1',
        '2: 2 prestart',
        '2: start 2',
        '2: 2 started 2',
        '3: 1 stopping',
        '3: stop 1 within 50',
        '3: release 1',
        '3: 1 exited SIGTERM',
        '3: 1 stopped',
        '4: 2 exited 0',
        '4: stop 2 within 50',
        '4: release 2',
        '4: 2 stopped',
      ])
    }))

  it('source error: ends nothing, and is passed on when the last task has stopped', () =>
    marbles((helpers) => {
      const error = new Error('no more specs')
      const machine = new Machine(helpers, [run('-----o', 'o')])
      const log = machine.play(helpers.cold('-a-#', { a: one }, error), { end: '------#', error })
      expect(log.slice(2)).to.deep.equal(['1: 1 started 1', '6: 1 exited 0', '6: stop 1 within 50', '6: release 1', '6: 1 stopped']) // prettier-ignore
    }))

  describe('port error', () => {
    const held = 'restarted 2 times in 600 seconds; the last time: '

    const preparations: [name: string, prepare: () => ObservableInput<TaskResources>][] = [
      ['throws', () => { throw new Error('no room') }], // prettier-ignore
      ['fails', () => throwError(() => new Error('no room'))],
    ]
    for (const [name, prepare] of preparations) {
      it(`port error: a preparation that ${name} counts as an exit, and the task is held in the end`, () =>
        marbles((helpers) => {
          const machine = new Machine(helpers, [], { prepare })
          expect(machine.play(helpers.cold('a', { a: one }))).to.deep.equal([
            '0: 1 prestart',
            '0: 1 exited nowhere + (no room)',
            '10: 1 prestart',
            '10: 1 exited nowhere + (no room)',
            '40: 1 prestart',
            '40: 1 exited nowhere (no room)',
          ])
          expect(machine.phases()).to.deep.equal(['starting', 'waiting: no room', 'starting', 'waiting: no room', 'starting', `held: ${held}no room`]) // prettier-ignore
        }))
    }

    it('port error: a start that fails, or gives nothing, counts as an exit too', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [() => helpers.cold('--#', {}, new Error('no program')), () => helpers.cold('-|'), run()]) // prettier-ignore
        expect(
          machine.play(helpers.cold('a', { a: one }), { until: '100ms !', init: { onClose: 'keep' } }),
        ).to.deep.equal([
          '0: 1 prestart',
          '0: start 1',
          '2: 1 exited nowhere + (no program)',
          '12: 1 prestart',
          '12: start 1',
          '13: 1 exited nowhere + (no elements in sequence)',
          '43: 1 prestart',
          '43: start 1',
          '43: 1 started 1',
          '100: release 1',
        ])
      }))

    for (const restart$ of ['-#', '-|', '#']) {
      it(`port error: restart requests that fail or end leave everything as it is (${restart$})`, () =>
        marbles((helpers) => {
          const machine = new Machine(helpers, [run('-----o', 'o')], { restart$: helpers.cold(restart$) })
          const log = machine.play(helpers.cold('(a|)', { a: one }), { end: '-----|' })
          expect(log.at(-1)).to.equal('5: 1 stopped')
        }))
    }

    it('port error: orders of the host that fail leave everything as it is', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-----o', 'o')], { order$: helpers.cold('-#') })
        expect(machine.play(helpers.cold('(a|)', { a: one }), { end: '-----|' }).at(-1)).to.equal('5: 1 stopped')
      }))

    it('port error: a run whose end cannot be learned has ended, and one that cannot be stopped is asked again', () =>
      marbles((helpers) => {
        const { cold } = helpers
        const stops = [cold<TaskExit>('-#'), cold<TaskExit>('|'), cold('--o', exits)]
        const start: Start = (machine) =>
          of({ ...machine.handle(), exit: cold<TaskExit>('---#'), stop: () => stops.shift()! })
        const machine = new Machine(helpers, [start])
        expect(
          machine.play(cold('(a|)', { a: { ...one, restart: { mode: 'never' } } }), { end: '2006ms |' }),
        ).to.deep.equal([
          '0: 1 prestart',
          '0: start 1',
          '0: 1 started 1',
          '3: 1 exited nowhere',
          '2006: release 1',
          '2006: 1 stopped',
        ])
      }))
  })

  describe('early unsubscribe', () => {
    const starting: Start = ({ helpers }) => helpers.cold('---h')
    void starting

    it('early unsubscribe: ends what runs, and has the host wait for it', async () => {
      let machine!: Machine
      marbles((helpers) => {
        machine = new Machine(helpers, [run('-', '---t'), run('-', '-t')])
        const source = helpers.cold('ab', { a: one, b: two })
        expect(machine.play(source, { until: '---!' }).slice(6)).to.deep.equal([
          '3: stop 1 within 50',
          '3: stop 2 within 50',
          '4: release 2',
          '6: release 1',
        ])
        helpers.expectSubscribed(source, '^--!')
      })
      expect(await Promise.all(machine.awaited)).to.deep.equal([exits['t'], exits['t']])
    })

    it('early unsubscribe: lets go of what runs where it is to be kept', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers)
        const log = machine.play(helpers.cold('a', { a: one }), { until: '---!', init: { onClose: 'keep' } })
        expect(log.slice(3)).to.deep.equal(['3: release 1'])
      }))

    it('early unsubscribe: ends what is being stopped, also where tasks are to be kept', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-', '-----t')])
        const source = helpers.cold('a-s', { a: one, s: order('stop') })
        const log = machine.play(source, { until: '---!', init: { onClose: 'keep' } })
        expect(log.slice(3)).to.deep.equal([
          '2: 1 stopping',
          '2: stop 1 within 50',
          '3: stop 1 within 50',
          '8: release 1',
        ])
      }))

    for (const onClose of ['stop', 'keep'] as const) {
      it(`early unsubscribe: what begins after it is not forgotten (${onClose})`, () =>
        marbles((helpers) => {
          const begins = helpers.cold('-----h')
          const machine = new Machine(helpers, [(self) => begins.pipe(map(() => self.handle()))])
          const log = machine.play(helpers.cold('a', { a: one }), { until: '--!', init: { onClose } })
          expect(log.slice(2)).to.deep.equal(
            onClose === 'keep' ? ['5: release 1'] : ['5: stop 1 within 50', '7: release 1'],
          )
          helpers.expectSubscribed(begins, '^----!')
        }))
    }

    it('early unsubscribe: leaves off a preparation, and a wait', () =>
      marbles((helpers) => {
        const prepare = helpers.cold('-----r', { r: resources })
        const machine = new Machine(helpers, [], { prepare: () => prepare })
        expect(machine.play(helpers.cold('a', { a: one }), { until: '--!' })).to.deep.equal(['0: 1 prestart'])
        helpers.expectSubscribed(prepare, '^-!')

        const waiting = new Machine(helpers, [run('-c', 'c')])
        expect(waiting.play(helpers.cold('a', { a: one }), { until: '---!' })).to.have.length(6)
        expect(machine.awaited.concat(waiting.awaited)).to.deep.equal([])
      }))

    it('early unsubscribe: keeps nobody waiting for what cannot be ended, and goes on ending it', async () => {
      let machine!: Machine
      marbles((helpers) => {
        machine = new Machine(helpers, [run('-', '20s t')])
        const log = machine.play(helpers.cold('a', { a: one }), { until: '---!' })
        expect(log.slice(3)).to.deep.equal(['3: stop 1 within 50', '20003: release 1'])
      })
      const [left] = await Promise.allSettled(machine.awaited)
      expect(left).to.have.nested.property('reason.message', 'task t of alloc 1 cannot be ended')
      expect(left).to.have.nested.property('reason.code', 'ERR_TIMEOUT')
    })

    it('early unsubscribe: is told that a run could not be ended, by whoever waits', async () => {
      let machine!: Machine
      marbles((helpers) => {
        machine = new Machine(helpers, [run('-', '#')])
        machine.play(helpers.cold('a', { a: one }), { until: '---!' })
      })
      expect(await Promise.allSettled(machine.awaited)).to.have.nested.property('[0].status', 'rejected')
    })
  })

  describe('restarts', () => {
    it('after longer and longer pauses, holds what is out of attempts, and resumes it by hand with all of them', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, Array<Start>(9).fill(run('-c', 'c')))
        const log = machine.play(helpers.hot('a 99ms r', { a: one, r: order('resume') }), { until: '100ms ---!' })
        expect(log.filter((line) => line.includes(': 1 '))).to.deep.equal([
          '0: 1 prestart',
          '0: 1 started 1',
          '1: 1 exited 1 +',
          '11: 1 prestart',
          '11: 1 started 2',
          '12: 1 exited 1 +',
          '42: 1 prestart',
          '42: 1 started 3',
          '43: 1 exited 1',
          '100: 1 prestart',
          '100: 1 started 4',
          '101: 1 exited 1 +',
        ])
        expect(machine.states.find(({ phase }) => phase === 'waiting')).to.deep.equal({
          task: one,
          phase: 'waiting',
          reason: 'exited with code 1',
          restarts: 1,
          dueAt: 11,
          at: 1,
        })
        expect(machine.phases()).to.include('held: restarted 2 times in 600 seconds; the last time: exited with code 1')
      }))

    it('after an hour where that is the pause', () =>
      marbles((helpers) => {
        const hour = 3_600_000
        const patient = { ...one, restart: { ...restart, minDelayMs: hour, maxDelayMs: hour } }
        const machine = new Machine(helpers, [run('-c', 'c')])
        const log = machine.play(helpers.cold('a', { a: patient }), { until: '3601s !', init: { onClose: 'keep' } })
        expect(log[6]).to.equal('3600001: 1 prestart')
      }))

    it('counts the pause from the exit, however long it takes to clear what was left', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-c', '------c'), run('-c', '40ms c')])
        const log = machine.play(helpers.cold('a', { a: one }), { until: '60ms !', init: { onClose: 'keep' } })
        expect(log.filter((line) => /release|prestart/.test(line))).to.deep.equal([
          '0: 1 prestart',
          '7: release 1',
          '11: 1 prestart',
          '52: release 2',
          '52: 1 prestart',
          '60: release 3',
        ])
      }))

    it('what supervision asks for, of this task alone, and counts it like a crash', () =>
      marbles((helpers) => {
        const restart$ = helpers.hot('-x-r', { r: request(one), x: request(two) })
        const machine = new Machine(helpers, [run('-', '--o')], { restart$ })
        expect(
          machine.play(helpers.cold('a', { a: one }), { until: '--------!', init: { onClose: 'keep' } }).slice(3),
        ).to.deep.equal(['3: stop 1 within 50', '5: release 1', '5: 1 exited 0 +'])
        expect(machine.states.at(-1)).to.include({ phase: 'waiting', reason: 'no socket', restarts: 1, dueAt: 15 })
        helpers.expectSubscribed(restart$, '^-------!')
      }))

    it('ignores a request that comes while the run is exiting or waits for its next try', () =>
      marbles((helpers) => {
        const restart$ = helpers.hot('--r-r----r-----r', { r: request(one) })
        const machine = new Machine(helpers, [run('--c', '-----c'), run()], { restart$ })
        const log = machine.play(helpers.cold('a', { a: one }), { until: '20ms !' })
        expect(log.slice(5)).to.deep.equal([
          '7: release 1',
          '12: 1 prestart',
          '12: start 1',
          '12: 1 started 2',
          '15: stop 2 within 50',
          '17: release 2',
          '17: 1 exited SIGTERM +',
        ])
      }))
  })

  describe('by hand', () => {
    it('stops while starting: waits for the start, and ends the run unseen', () =>
      marbles((helpers) => {
        const begins = helpers.cold('----h')
        const machine = new Machine(helpers, [(self) => begins.pipe(map(() => self.handle()))])
        const source = helpers.cold('a-(s|)', { a: one, s: order('stop') })
        expect(machine.play(source, { end: '------|' })).to.deep.equal([
          '0: 1 prestart',
          '0: start 1',
          '2: 1 stopping',
          '4: stop 1 within 50',
          '6: release 1',
          '6: 1 exited SIGTERM',
          '6: 1 stopped',
        ])
        helpers.expectSubscribed(begins, '^---!')
      }))

    it('replaces while waiting for the next try: at once, and with all attempts', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-c', 'c'), run('-c', 'c')])
        const source = helpers.cold('a---b', { a: one, b: newer })
        const log = machine.play(source, { until: '--------!' })
        expect(log.slice(6)).to.deep.equal(['4: 1 prestart v2', '4: start 1', '4: 1 started 2', '5: 1 exited 1 +', '5: stop 2 within 50', '5: release 2']) // prettier-ignore
        expect(machine.states.at(-1)).to.include({ phase: 'waiting', restarts: 1, dueAt: 15 })
      }))

    it('replaces what runs: the new one begins when nothing is left of the old', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers)
        const source = helpers.cold('a-bb', { a: one, b: newer })
        expect(machine.play(source, { until: '-----!', init: { onClose: 'keep' } }).slice(2)).to.deep.equal([
          '0: 1 started 1',
          '2: stop 1 within 50',
          '4: release 1',
          '4: 1 exited SIGTERM +',
          '4: 1 prestart v2',
          '4: start 1',
          '4: 1 started 2',
          '5: release 2',
        ])
      }))

    it('does nothing for an equal spec, and nothing for orders to a task that is not there', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers)
        const source = helpers.cold('arsea', { a: one, e: structuredClone(one), r: order('resume', two), s: order('stop', two) }) // prettier-ignore
        expect(machine.play(source, { until: '-----!', init: { onClose: 'keep' } })).to.have.length(4)
        expect(machine.phases()).to.deep.equal(['starting', 'running'])
      }))

    it('starts anew what was stopped and forgotten', () =>
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-', 't'), run('-', 't')])
        const source = helpers.cold('asa(s|)', { a: one, s: order('stop') })
        const log = machine.play(source, { end: '---|' })
        expect(log.filter((line) => /prestart|stopped/.test(line))).to.deep.equal(['0: 1 prestart', '1: 1 stopped', '2: 1 prestart', '3: 1 stopped']) // prettier-ignore
      }))
  })

  it('tells everybody of an event before it hears the answer of one', () =>
    marbles((helpers) => {
      const input$ = new Subject<TaskSpec | TaskOrder>()
      const machine = new Machine(helpers, [run('-', 't')])
      const event$ = machine.events(input$).pipe(share())
      const answers$ = event$.pipe(
        tap(({ kind }) => {
          if (kind === 'started') input$.next(order('stop'))
          if (kind === 'stopped') input$.next(newer)
        }),
      )
      helpers
        .expectObservable(merge(answers$.pipe(ignoreElements()), event$.pipe(map(words))), '^-!')
        .toBe('(12345678)', {
          1: '1 prestart',
          2: '1 started 1',
          3: '1 stopping',
          4: '1 exited SIGTERM',
          5: '1 stopped',
          6: '1 prestart v2',
          7: '1 started 2',
          8: '1 stopping',
        })
      helpers.expectObservable(of(one).pipe(tap((spec) => input$.next(spec)), ignoreElements())).toBe('|') // prettier-ignore
    }))

  it('takes a task as it is when it is given: the same object, changed and given again, is another task to run', () =>
    marbles((helpers) => {
      const machine = new Machine(helpers)
      const spec = { ...one, command: ['v1'] as [string] }
      const change = (): void => void (spec.command[0] = 'v2')
      const source = concat(of(spec), helpers.cold('---(a|)', { a: spec }).pipe(tap(change)), NEVER)
      const told = machine.play(source, { until: '-------!', init: { onClose: 'keep' } })
      expect(told.filter((line) => line.includes('prestart')).map((line) => line.replace(/^\d+: /, ''))).to.deep.equal([
        '1 prestart',
        '1 prestart v2',
      ])
    }))

  it('refuses what cannot be run, leaves what runs under its name, and says why', () =>
    marbles((helpers) => {
      const machine = new Machine(helpers)
      const wrong = [{ ...one, command: [] }, { ...order('stop'), order: 'kill' }, undefined]
      const source = helpers.cold('abcd', { a: one, b: wrong[0], c: wrong[1], d: wrong[2] }) as Observable<TaskSpec>
      expect(machine.play(source, { until: '-----!', init: { onClose: 'keep' } })).to.have.length(4)
      expect(machine.phases().slice(2)).to.deep.equal([
        'refused: command is a list; it must be a list of the program and its arguments',
        'refused: order is "kill"; it must be one of stop, restart, resume',
        'refused: task is undefined; it must be a task or an order',
      ])
    }))

  it('tells its host of what it refuses', () => {
    const problems: string[] = []
    const driver = { start: () => NEVER }
    const ports = {
      prepare: () => NEVER,
      restart$: NEVER,
      problem: ({ code, message }: PlugstreamError) => void problems.push(`${code} ${message}`),
    }
    runTasks(of({ ...one, command: [] } as unknown as TaskSpec), driver, ports)
      .subscribe()
      .unsubscribe()
    expect(problems).to.deep.equal([
      'ERR_OPTION_INVALID command is a list; it must be a list of the program and its arguments',
    ])
  })

  it('goes on when the observer of its states throws, which is uncaught as from any subscriber', async () => {
    const listeners = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    const thrown: unknown[] = []
    process.on('unhandledRejection', (reason) => void thrown.push(reason))
    try {
      const error = new Error('observer')
      const state = {
        next: () => {
          throw error
        },
      }
      marbles((helpers) => {
        const machine = new Machine(helpers, [run('-----o', 'o')])
        machine.play(helpers.cold('(a|)', { a: one }), { end: '-----|', init: { state } })
      })
      await new Promise(setImmediate)
      expect(thrown).to.deep.equal([error, error, error, error])
    } finally {
      process.removeAllListeners('unhandledRejection')
      for (const listener of listeners) process.on('unhandledRejection', listener)
    }
  })

  it('starts nothing before somebody subscribes, and runs tasks of its own for each who does', () =>
    marbles((helpers) => {
      const machine = new Machine(helpers)
      const event$ = machine.events(of(one), { onClose: 'keep' })
      expect(machine.log).to.deep.equal([])
      helpers.expectObservable(event$.pipe(ignoreElements()), '^-!').toBe('-')
      helpers.expectObservable(event$.pipe(ignoreElements()), '^-!').toBe('-')
      helpers.flush()
      expect(machine.log).to.deep.equal(['0: start 1', '0: start 1', '2: release 1', '2: release 2'])
    }))
})
