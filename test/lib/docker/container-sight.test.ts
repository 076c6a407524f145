import { expect } from 'chai'
import {
  afterLook,
  eventsBetween,
  type ContainerSight,
  type ContainerSights,
} from '../../../lib/docker/container-sight.js'
import type { TaskEvent } from '../../../lib/task/task.js'
import { task } from '../task/plugin-task.js'

const sight = (fields: Partial<ContainerSight> = {}): ContainerSight => ({
  id: '1',
  task: task(),
  running: true,
  startedAt: 'first',
  pid: 7,
  exit: { code: 0, signal: null },
  restarts: false,
  ...fields,
})
const sights = (...all: ContainerSight[]): ContainerSights => new Map(all.map((one) => [one.id, one]))
const told = (before: ContainerSights, after: ContainerSights): string =>
  eventsBetween(before, after, 5)
    .map((event: TaskEvent) => (event.kind === 'exited' ? `exited ${event.code}` : event.kind))
    .join(', ')

describe('what happened between two looks at containers', () => {
  const made = sight({ running: false, startedAt: '' })
  const runs = sight()
  const again = sight({ startedAt: 'second' })
  const ended = sight({ running: false, exit: { code: 3, signal: null } })
  const rows: [was: ContainerSight | undefined, is: ContainerSight | undefined, told: string][] = [
    [undefined, made, ''],
    [undefined, runs, 'prestart, started'],
    [undefined, ended, ''],
    [made, runs, 'prestart, started'],
    [made, undefined, ''],
    [runs, runs, ''],
    [runs, again, 'exited null, prestart, started'],
    [runs, ended, 'exited 3'],
    [runs, undefined, 'exited null, stopped'],
    [ended, ended, ''],
    [ended, again, 'prestart, started'],
    [ended, undefined, 'stopped'],
  ]
  const name = (one: ContainerSight | undefined): string =>
    !one ? 'not there' : one.running ? `in its ${one.startedAt} run` : one.startedAt ? 'ended' : 'made'
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

  it('is no stop of a task that goes on in another container', () => {
    const next = sight({ id: '2' })
    expect(told(sights(ended), sights(next))).to.equal('prestart, started')
    expect(told(sights(ended, next), sights(next))).to.equal('')
    expect(told(sights(next), sights())).to.equal('exited null, stopped')
  })
})

describe('a look at containers', () => {
  it('at all of them forgets the others, and one at one leaves them', () => {
    const before = sights(sight(), sight({ id: '2' }))
    const [one, two] = [sight({ startedAt: 'second' }), sight({ id: '2' })]
    expect([...afterLook(before, { kind: 'all', sights: [one] })]).to.deep.equal([['1', one]])
    expect([...afterLook(before, { kind: 'one', id: '1', sight: one })]).to.deep.equal([...sights(one, two)])
    expect([...afterLook(before, { kind: 'one', id: '1', sight: undefined })]).to.deep.equal([['2', two]])
    expect(before.get('1')?.startedAt).to.equal('first')
  })
})
