import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { takeTaskEvent } from '../../../lib/task/task-plugin.js'
import type { TaskEvent } from '../../../lib/task/task.js'

const event = () => ({
  kind: 'started' as const,
  at: 1,
  pid: 7,
  task: {
    allocId: 'a1',
    taskName: 'driver',
    isolation: 'none' as const,
    csiPlugin: { id: 'ebs', type: 'node' as const },
  },
})

describe('takeTaskEvent', () => {
  it('gives an event in which its giver can change nothing any more', () => {
    const given = event()
    const taken = takeTaskEvent(given)
    Object.assign(given, { kind: 'stopped' })
    given.task.allocId = 'another'
    given.task.csiPlugin.id = 'another'
    expect(taken).to.deep.equal(event())
  })

  it('reads fields that a class computes', () => {
    class Task {
      readonly isolation = 'none' as const
      get allocId() {
        return 'a1'
      }
      get taskName() {
        return 'driver'
      }
    }
    const { task } = takeTaskEvent({ kind: 'stopped', at: 1, task: new Task() })
    expect(task).to.deep.equal({ isolation: 'none', allocId: 'a1', taskName: 'driver' })
  })

  const refused: readonly (readonly [field: string, given: unknown])[] = [
    ['event', undefined],
    ['event', 'text'],
    ['event.kind', {}],
    ['event.kind', { ...event(), kind: 'boom' }],
    ['task', { ...event(), task: null }],
    ['task.allocId', { ...event(), task: { ...event().task, allocId: '' } }],
    ['task.taskName', { ...event(), task: { ...event().task, taskName: 'a\0' } }],
    ['task.isolation', { ...event(), task: { ...event().task, isolation: undefined } }],
    ['task.plugin', { ...event(), task: { ...event().task, plugin: { kind: 'csi', id: 'x' } } }],
  ]
  for (const [field, given] of refused) {
    it(`refuses ${JSON.stringify(given)} naming ${field}`, () => {
      expect(() => takeTaskEvent(given as TaskEvent))
        .to.throw(PlugstreamError)
        .with.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
    })
  }
})
