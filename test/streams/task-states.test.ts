import { expect } from 'chai'
import { from, map, of, toArray, type Observable } from 'rxjs'
import type { TaskEvent } from '../../lib/task/task.js'
import { taskStates } from '../../streams/task-states.js'
import { marbles } from '../testing/marbles.js'
import { pluginTask, taskEvent } from './support/values.js'

const other = pluginTask({ allocId: 'a2' })
const events: Record<string, TaskEvent> = {
  p: taskEvent('prestart'),
  s: taskEvent('started'),
  x: taskEvent('exited'),
  g: taskEvent('stopping'),
  d: taskEvent('stopped'),
  S: taskEvent('started', other),
  X: taskEvent('exited', other),
}

/** Phase and run after each event. */
function told(event$: Observable<TaskEvent>): Observable<string> {
  return taskStates(event$).pipe(map(({ state: { phase, run } }) => `${phase} ${run}`))
}

describe('taskStates', () => {
  it('never: tells nothing of tasks nothing is told of', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold<never>('-')
      expectObservable(taskStates(event), '^--!').toBe('-')
      expectSubscribed(event, '^--!')
    }))

  it('empty: ends with its source', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(taskStates(cold('--|'))).toBe('--|')
    }))

  it('one: tells whose state it is, which, and of which run', () =>
    marbles(({ cold, expectObservable }) => {
      const state = { phase: 'running', run: 1, description: 'the task is running' }
      expectObservable(taskStates(cold('-s|', events))).toBe('-a|', {
        a: { allocId: 'a1', taskName: 'driver', state },
      })
    }))

  it('many: follows a task from before its start to its end', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(told(cold('psxsgxd|', events))).toBe('psxtgyd|', {
        p: 'starting 0',
        s: 'running 1',
        x: 'exited 1',
        t: 'running 2',
        g: 'stopping 2',
        y: 'exited 2',
        d: 'stopped 2',
      })
    }))

  it('takes a run that was there before the host for the one whose socket it knows, and one after it for another', () =>
    marbles(({ cold, expectObservable }) => {
      const all: Record<string, TaskEvent> = {
        ...events,
        a: { kind: 'started', task: pluginTask(), at: 0, adopted: true },
      }
      expectObservable(told(cold('paxas', all))).toBe('prxts', {
        p: 'starting 0',
        r: 'running 0',
        x: 'exited 0',
        t: 'running 1',
        s: 'running 2',
      })
    }))

  it('source error: passes it on', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(told(cold('s-#', events))).toBe('s-#', { s: 'running 1' })
    }))

  it('early unsubscribe: leaves the source', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const event = cold('s--x', events)
      expectObservable(told(event), '^-!').toBe('s', { s: 'running 1' })
      expectSubscribed(event, '  ^-!')
    }))

  it('counts a start without an exit before it as a new run', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(told(cold('ss', events))).toBe('ab', { a: 'running 1', b: 'running 2' })
    }))

  it('takes a task that exited for exited until it has started again, also while that is prepared', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(told(cold('sxps', events))).toBe('abbc', { a: 'running 1', b: 'exited 1', c: 'running 2' })
    }))

  it('keeps tasks apart', () =>
    marbles(({ cold, expectObservable }) => {
      const state$ = taskStates(cold('sSx', events)).pipe(map(({ allocId, state }) => `${allocId} ${state.phase}`))
      expectObservable(state$).toBe('abc', { a: 'a1 running', b: 'a2 running', c: 'a1 exited' })
    }))

  it('never gives a run the number of another, not even of a task that stopped and came back', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(told(cold('sdSXs', events))).toBe('abcde', {
        a: 'running 1',
        b: 'stopped 1',
        c: 'running 2',
        d: 'exited 2',
        e: 'running 3',
      })
    }))

  it('says how a task exited', () => {
    const exit = (code: number | null, signal: string | null): TaskEvent => ({
      kind: 'exited',
      task: pluginTask(),
      at: 0,
      code,
      signal,
      willRestart: false,
    })
    const said: string[] = []
    taskStates(from([exit(3, null), exit(null, 'SIGKILL')])).subscribe(({ state }) => said.push(state.description))
    expect(said).to.deep.equal(['the task exited with code 3', 'the task was ended by SIGKILL'])
  })

  it('starts to count anew for each subscriber', () =>
    marbles(({ expectObservable }) => {
      const state$ = told(of(events['s'] as TaskEvent)).pipe(toArray())
      expectObservable(state$).toBe('(a|)', { a: ['running 1'] })
      expectObservable(state$).toBe('(a|)', { a: ['running 1'] })
    }))
})
