import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import {
  bufferCount,
  filter,
  firstValueFrom,
  lastValueFrom,
  map,
  ReplaySubject,
  Subject,
  tap,
  type Subscription,
} from 'rxjs'
import type { TaskSpec } from '../../lib/task/driver.js'
import { taskLogPaths } from '../../lib/task/log-file.js'
import { processDriver } from '../../lib/task/process-driver.js'
import { ProcessGroup } from '../../lib/task/process-group.js'
import type { TaskRunState } from '../../lib/task/task-run-state.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { RestartRequest, TaskEvent } from '../../lib/task/task.js'
import { runTasks, type RunTasksInit } from '../../streams/run-tasks.js'
import { inUse, leftSince } from '../support/in-use.js'

const quick = { minDelayMs: 1, maxDelayMs: 5, factor: 2, jitter: 0 }

describe('run tasks, as processes', () => {
  let directory: string
  let before: string[]
  let input$: Subject<TaskSpec | TaskOrder>
  let restart$: Subject<RestartRequest>
  let state$: ReplaySubject<TaskRunState>
  let event$: ReplaySubject<TaskEvent>
  let told: TaskEvent[]
  let work: Promise<unknown>[]
  let running: Subscription

  beforeEach(async () => {
    before = await inUse()
    directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
    input$ = new Subject()
    restart$ = new Subject()
    state$ = new ReplaySubject()
    event$ = new ReplaySubject()
    told = []
    work = []
  })
  afterEach(async () => {
    await close()
    rmSync(directory, { recursive: true })
    expect(await leftSince(before)).to.deep.equal([])
  })

  function open(init: RunTasksInit = {}, maxLogBytes?: number): void {
    const driver = processDriver({ logDir: join(directory, 'logs'), ...(maxLogBytes ? { maxLogBytes } : {}) })
    const ports = {
      prepare: async () => ({ socketPath: join(directory, 's'), env: { ENDPOINT: 'here' }, mounts: [] }),
      restart$,
      waitOnClose: (one: Promise<unknown>) => void work.push(one),
    }
    running = runTasks(input$, driver, ports, { state: state$, ...init })
      .pipe(tap((event) => void told.push(event)))
      .subscribe(event$)
  }

  async function close(): Promise<void> {
    running.unsubscribe()
    await Promise.all(work)
  }

  const task = (script: string, more: Partial<TaskSpec> = {}): TaskSpec => ({
    allocId: 'a',
    taskName: 't',
    isolation: 'none',
    cwd: directory,
    command: ['/bin/sh', '-c', script],
    stopGraceMs: 10_000,
    restart: quick,
    ...more,
  })
  const order = (what: TaskOrder['order']): TaskOrder => ({ order: what, allocId: 'a', taskName: 't' })
  const forever = 'while [ -d "$PWD" ]; do sleep 0.02; done'

  const next = (phase: TaskRunState['phase']): Promise<TaskRunState> =>
    firstValueFrom(state$.pipe(filter((state) => state.phase === phase)))
  /** The pids of the first runs, once there are so many. */
  const started = (count: number): Promise<number[]> =>
    firstValueFrom(
      event$.pipe(
        filter((event) => event.kind === 'started'),
        map(({ pid }) => pid!),
        bufferCount(count),
      ),
    )
  const kinds = (): string[] => told.map(({ kind }) => kind)
  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  /** Who is alive of the group of a run; a zombie is not. */
  const leftOf = (pid: number): Promise<readonly number[]> => new ProcessGroup(pid).alive()
  const untilThere = async (file: string): Promise<void> => {
    while (!existsSync(join(directory, file))) await delay(5)
  }

  it('holds a task that crashes three times in a row, and runs it when it is resumed', async () => {
    open()
    const crashing = `echo run >> runs; [ $(wc -l < runs) -gt 3 ] || exit 3; ${forever}`
    input$.next(task(crashing, { restart: { ...quick, attempts: 2 } }))
    const held = await next('held')
    expect(held).to.include({
      reason: 'restarted 2 times in 600 seconds; the last time: exited with code 3',
      restarts: 2,
    })
    expect(told.filter(({ kind }) => kind === 'exited').map((event) => event.kind === 'exited' && event.willRestart)).to.deep.equal([true, true, false]) // prettier-ignore
    expect(readFileSync(join(directory, 'runs'), 'utf8')).to.equal('run\n'.repeat(3))

    input$.next(order('resume'))
    const pids = await started(4)
    expect(new Set(pids)).to.have.length(4)
    expect(pids.filter(isAlive)).to.deep.equal([pids[3]])
    input$.next(order('stop'))
    input$.complete()
    await lastValueFrom(event$)
    expect(kinds().slice(-5)).to.deep.equal(['prestart', 'started', 'stopping', 'exited', 'stopped'])
    expect(isAlive(pids[3]!)).to.be.false
  })

  it('brings back a task that was killed, with another pid, once nothing is left of the first', async () => {
    open()
    input$.next(task(`echo $$ >> pids; sh -c 'trap "" TERM; : > ready; ${forever}' & ${forever}`, { stopGraceMs: 50 }))
    const [first] = await started(1)
    await untilThere('ready')
    process.kill(first!, 'SIGKILL')
    const cleared = await next('waiting')
    expect(cleared.reason).to.equal('ended by SIGKILL')
    expect(await leftOf(first!)).to.deep.equal([])
    const [, second] = await started(2)
    expect(isAlive(second!)).to.be.true
  })

  it('restarts a task that supervision asks for', async () => {
    open()
    const spec = task(`trap 'exit 0' TERM; : > ready; ${forever}`)
    input$.next(spec)
    await untilThere('ready')
    restart$.next({ task: spec, reason: 'socket-missing', message: 'no socket' })
    const [first, second] = await started(2)
    expect([isAlive(first!), isAlive(second!)]).to.deep.equal([false, true])
    expect(kinds()).to.deep.equal(['prestart', 'started', 'exited', 'prestart', 'started'])
    expect(told[2]).to.include({ code: 0, willRestart: true })
  })

  it('replaces a task that is given anew', async () => {
    open()
    input$.next(task(forever))
    const [first] = await started(1)
    input$.next(task(`: > other; ${forever}`))
    await untilThere('other')
    expect(isAlive(first!)).to.be.false
    expect(kinds().slice(0, 4)).to.deep.equal(['prestart', 'started', 'exited', 'prestart'])
  })

  it('tells why a task cannot begin, and goes on with the others', async () => {
    open()
    input$.next({ ...task(''), command: ['/no/such'], restart: { mode: 'never' } })
    input$.next(task(forever, { taskName: 'other' }))
    await started(1)
    await next('stopped')
    const exited = told.find(({ kind }) => kind === 'exited')
    expect(exited).to.include({ code: null, signal: null, willRestart: false })
    expect(exited).to.have.property('reason').that.includes('cannot run /no/such: it is not there (ENOENT)')
  })

  it('gives a task what its host has prepared', async () => {
    open()
    input$.next(task('echo "$ENDPOINT" > endpoint', { restart: { mode: 'never' } }))
    await next('stopped')
    expect(readFileSync(join(directory, 'endpoint'), 'utf8')).to.equal('here\n')
  })

  it('trims the log files over the runs of a task', async () => {
    open({}, 100)
    input$.next(task('head -c 1000 /dev/zero; exit 1', { restart: { ...quick, attempts: 3 } }))
    await next('held')
    const { stdout } = taskLogPaths(join(directory, 'logs'), task(''))
    while (statSync(stdout).size > 0) await delay(5)
    expect(statSync(`${stdout}.1`).size).to.equal(100)
  })

  it('ends every task, and all they started, when it is left', async () => {
    open()
    const names = ['t1', 't2', 't3']
    for (const taskName of names) {
      const script = `sh -c 'trap "" TERM; echo $$ > ${taskName}.pid; mv ${taskName}.pid ${taskName}; ${forever}' & ${forever}`
      input$.next(task(script, { taskName, stopGraceMs: 50 }))
    }
    const leaders = await started(3)
    await Promise.all(names.map(untilThere))
    const others = names.map((name) => Number(readFileSync(join(directory, name), 'utf8')))
    expect([...leaders, ...others].filter(isAlive)).to.have.length(6)
    running.unsubscribe()
    expect(work).to.have.length(3)
    await Promise.all(work)
    for (const leader of leaders) expect(await leftOf(leader)).to.deep.equal([])
    expect(kinds()).to.not.include('exited')
  })

  it('leaves every task running when they are to be kept', async () => {
    open({ onClose: 'keep' })
    input$.next(task(`while [ -d "$PWD" ] && [ ! -e end ]; do sleep 0.01; done; : > ended`))
    const [pid] = await started(1)
    await close()
    expect(isAlive(pid!)).to.be.true
    writeFileSync(join(directory, 'end'), '')
    await untilThere('ended')
  })

  for (const onClose of ['stop', 'keep'] as const) {
    it(`leaves no child behind when it is left at any moment of a start (${onClose})`, async () => {
      for (let round = 0; round < 20; round++) {
        open({ onClose })
        input$.next(task(`: > r${round}; [ ${onClose} = stop ] && ${forever}; exit 0`))
        for (let turn = 0; turn < round; turn++) await delay(1)
        await close()
      }
      expect(await leftSince(before)).to.deep.equal([])
    })
  }

  it('ends what fails, restarts, stops and is replaced all at once', async () => {
    open()
    const scripts = [
      'exit 0',
      'exit 1',
      forever,
      `trap '' TERM; ${forever}`,
      `sh -c '${forever}' & exit 1`,
      'kill -9 $$',
    ]
    for (let round = 0; round < 60; round++) {
      const taskName = `t${round % 7}`
      const { allocId } = task('')
      const orders = ['stop', 'restart', 'resume'] as const
      input$.next(task(scripts[(round * 5) % scripts.length]!, { taskName, stopGraceMs: 20 }))
      if (round % 3 === 0) input$.next({ order: orders[round % 2]!, allocId, taskName: `t${(round * 3) % 7}` })
      await delay(round % 4)
    }
    for (let n = 0; n < 7; n++) input$.next({ order: 'stop', allocId: 'a', taskName: `t${n}` })
    input$.complete()
    await lastValueFrom(event$)
    const left = new Set(told.filter(({ kind }) => kind === 'started').map((event) => event.kind === 'started' && event.pid)) // prettier-ignore
    for (const pid of left) expect(await leftOf(Number(pid))).to.deep.equal([])
  })
})
