import { expect } from 'chai'
import { PlugstreamError } from '../../lib/errors.js'
import type { PluginTask, TaskEvent } from '../../lib/task/task.js'
import { aStory, isHealthy, pluginTask } from './support.js'

const task = pluginTask()
const configured = (csiPlugin: object): PluginTask =>
  pluginTask({ csiPlugin: csiPlugin as PluginTask['csiPlugin'] & {} })

describe('what cannot be', () => {
  const badEvents: readonly [what: string, event: unknown, field: string][] = [
    ['nothing', null, 'event'],
    ['an event of no kind', { task, at: 0 }, 'event.kind'],
    ['an event of a kind nobody knows', { kind: 'paused', task, at: 0 }, 'event.kind'],
    ['an event of no task', { kind: 'started', at: 0 }, 'task'],
    ['a task without an alloc', { kind: 'started', task: { ...task, allocId: '' }, at: 0 }, 'task.allocId'],
    ['a task without a name', { kind: 'started', task: { ...task, taskName: undefined }, at: 0 }, 'task.taskName'],
    ['a name with NUL', { kind: 'started', task: { ...task, taskName: 'a\0b' }, at: 0 }, 'task.taskName'],
    ['an isolation nobody knows', { kind: 'started', task: { ...task, isolation: 'jail' }, at: 0 }, 'task.isolation'],
    [
      'a plugin that is told twice',
      { kind: 'started', task: { ...task, plugin: { kind: 'csi', id: 'ebs' } }, at: 0 },
      'task.plugin',
    ],
  ]
  it(
    'as an event is left out and told once, and what comes after it is heard',
    aStory({}, async ({ task$, problems, health, notes, start }) => {
      for (const [, event] of badEvents) task$.next(event as TaskEvent)
      await start(task)
      await health.until(isHealthy)
      expect(problems.all.map(({ code, details: { field } }) => `${code} ${field}`)).to.deep.equal(
        badEvents.map(([, , field]) => `ERR_OPTION_INVALID ${field}`),
      )
      await notes.until(() => true)
      expect(notes.all.map(({ kind }) => kind)).to.deep.equal(['plugin-healthy'])
    }),
  )

  const badConfigurations: readonly [what: string, task: PluginTask, words: string][] = [
    ['an empty id', configured({ id: '', type: 'node' }), 'csiPlugin.id is ""'],
    ['an id with NUL', configured({ id: 'a\0', type: 'node' }), 'csiPlugin.id is "a'],
    ['a type nobody knows', configured({ id: 'ebs', type: 'both' }), 'csiPlugin.type is "both"'],
    [
      'a volume directory that is the mount directory',
      configured({ id: 'ebs', type: 'node', mountDir: '/csi', stagePublishBaseDir: '/csi' }),
      'csiPlugin.stagePublishBaseDir is "/csi"',
    ],
    [
      'a volume directory inside the mount directory',
      configured({ id: 'ebs', type: 'node', mountDir: '/csi', stagePublishBaseDir: '/csi/x' }),
      'csiPlugin.stagePublishBaseDir is "/csi/x"',
    ],
    [
      'a setting nobody knows',
      configured({ id: 'ebs', type: 'node', moutDir: '/x' }),
      'csiPlugin.moutDir is no field; there are id',
    ],
    [
      'a kind nobody knows',
      { allocId: 'a1', taskName: 'driver', isolation: 'none', plugin: { kind: 'toy', id: 'x' } },
      'task.plugin.kind is "toy"; it must be one of csi',
    ],
  ]
  for (const [what, bad, words] of badConfigurations)
    it(
      `as a configuration is told once, by prepare and in a note: ${what}`,
      aStory({}, async ({ host, tell, notes, problems, restarts, start, health }) => {
        const refusal = await host.prepare(bad).then(
          () => undefined,
          (failure: unknown) => failure,
        )
        expect(refusal).to.be.instanceOf(PlugstreamError).and.include({ code: 'ERR_OPTION_INVALID' })
        expect((refusal as Error).message).to.contain(words)

        tell('prestart', bad)
        tell('started', bad)
        tell('stopping', bad)
        tell('stopped', bad)
        // It was all of it handled by the time another one is well.
        await start(pluginTask({ allocId: 'well' }))
        await health.until(isHealthy)
        const said = notes.all.filter(
          (note) => note.task.taskName === bad.taskName && note.task.allocId === bad.allocId,
        )
        expect(said.map(({ kind, message }) => ({ kind, message }))).to.deep.equal([
          { kind: 'plugin-unhealthy', message: (refusal as Error).message },
        ])
        expect(problems.all).to.deep.equal([])
        expect(restarts.all).to.deep.equal([])
      }),
    )

  it(
    'is not what only looks like it: a volume directory that begins with the name of the mount directory',
    aStory({}, async ({ start, health }) => {
      await start(configured({ id: 'ebs', type: 'node', mountDir: '/csi', stagePublishBaseDir: '/csilocal' }))
      await health.until(isHealthy)
    }),
  )
})
