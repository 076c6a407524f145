import { expect } from 'chai'
import { afterLook, eventsBetween, type TaskSight, type TaskSights } from '../../../lib/task/task-sight.js'
import type { TaskEvent } from '../../../lib/task/task.js'
import { task } from './plugin-task.js'

const sight = (fields: Partial<TaskSight> = {}): TaskSight => ({
  id: '1',
  task: task(),
  running: true,
  run: 'first',
  pid: 7,
  exit: { code: 0, signal: null },
  restarts: false,
  ...fields,
})
const sights = (...all: TaskSight[]): TaskSights => new Map(all.map((one) => [one.id, one]))
const told = (before: TaskSights, after: TaskSights): string =>
  eventsBetween(before, after, 5)
    .map((event: TaskEvent) =>
      event.kind === 'exited' ? `exited ${event.code}${event.willRestart ? '+' : ''}` : event.kind,
    )
    .join(', ')

describe('what happened between two looks at what runs tasks', () => {
  const made = sight({ running: false, run: '' })
  const runs = sight()
  const again = sight({ run: 'second' })
  const ended = sight({ running: false, exit: { code: 3, signal: null } })
  const endedAgain = { ...ended, run: 'second' }
  const ending = sight({ stopping: true })
  const rows: [was: TaskSight | undefined, is: TaskSight | undefined, told: string][] = [
    [undefined, made, ''],
    [undefined, runs, 'prestart, started'],
    [undefined, ended, 'prestart, exited 3'],
    [made, ended, 'prestart, exited 3'],
    [runs, endedAgain, 'exited null+, prestart, exited 3'],
    [ended, endedAgain, 'prestart, exited 3'],
    [undefined, ending, 'prestart, started, stopping'],
    [runs, ending, 'stopping'],
    [ending, ending, ''],
    [ending, again, 'exited null+, prestart, started'],
    [made, runs, 'prestart, started'],
    [made, undefined, ''],
    [runs, runs, ''],
    [runs, again, 'exited null+, prestart, started'],
    [runs, ended, 'exited 3'],
    [runs, undefined, 'exited null, stopped'],
    [ended, ended, ''],
    [ended, again, 'prestart, started'],
    [ended, undefined, 'stopped'],
  ]
  const name = (one: TaskSight | undefined): string =>
    !one
      ? 'not there'
      : `${one.stopping ? 'ending' : one.running ? 'running' : one.run ? 'ended' : 'made'}${one.run && `, in its ${one.run} run`}`
  for (const [was, is, words] of rows)
    it(`is ${words || 'nothing'} where one was ${name(was)} and is ${name(is)}`, () => {
      expect(told(sights(...(was ? [was] : [])), sights(...(is ? [is] : [])))).to.equal(words)
    })

  it('is of the task, with its time, process and end', () => {
    const oom = sight({
      running: false,
      exit: { code: null, signal: 'SIGKILL', reason: 'out of memory' },
      restarts: true,
    })
    expect(eventsBetween(sights(), sights(runs), 5)).to.deep.equal([
      { kind: 'prestart', task: task(), at: 5 },
      { kind: 'started', task: task(), at: 5, pid: 7 },
    ])
    expect(eventsBetween(sights(runs), sights(oom), 6)).to.deep.equal([
      {
        kind: 'exited',
        task: task(),
        at: 6,
        code: null,
        signal: 'SIGKILL',
        reason: 'out of memory',
        willRestart: true,
      },
    ])
  })

  it('is no stop of a task that goes on elsewhere', () => {
    const next = sight({ id: '2' })
    expect(told(sights(ended), sights(next))).to.equal('prestart, started')
    expect(told(sights(ended, next), sights(next))).to.equal('')
    expect(told(sights(next), sights())).to.equal('exited null, stopped')
  })

  it('is told of what runs where something else of that task has ended, and once of its end', () => {
    const next = sight({ id: '2', run: 'second' })
    expect(told(sights(), sights(next, ended))).to.equal('prestart, started')
    expect(told(sights(), sights(ended, next))).to.equal('prestart, started')
    expect(told(sights(runs), sights(ended, next))).to.equal('exited 3+, prestart, started')
    const over = { ...next, running: false, exit: { code: 4, signal: null } }
    expect(told(sights(ended, next), sights(over, ended))).to.equal('exited 4')
    expect(told(sights(ended, next), sights(ended))).to.equal('exited null')
  })

  it('is told as gone on with where nobody has looked before', () => {
    expect(eventsBetween(undefined, sights(runs), 5)[1]).to.include({ kind: 'started', pid: 7, adopted: true })
  })
})

describe('a look at what runs tasks', () => {
  it('at all of them forgets the others, and one at one leaves them', () => {
    const before = sights(sight(), sight({ id: '2' }))
    const [one, two] = [sight({ run: 'second' }), sight({ id: '2' })]
    expect([...afterLook(before, { kind: 'all', sights: [one] })]).to.deep.equal([['1', one]])
    expect([...afterLook(before, { kind: 'one', id: '1', sight: one })]).to.deep.equal([...sights(one, two)])
    expect([...afterLook(before, { kind: 'one', id: '1', sight: undefined })]).to.deep.equal([['2', two]])
    expect(before.get('1')?.run).to.equal('first')
  })
})
