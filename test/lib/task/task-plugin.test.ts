import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { csiKind } from '../../../lib/csi/kind.js'
import { grpcKind } from '../../../lib/grpc/kind.js'
import { takeTaskEvent, taskPlugin } from '../../../lib/task/task-plugin.js'
import type { PluginTask, TaskEvent } from '../../../lib/task/task.js'

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

describe('taskPlugin', () => {
  const csi = csiKind()
  const task = (overrides: object): PluginTask => ({
    allocId: 'a1',
    taskName: 'driver',
    isolation: 'image',
    ...overrides,
  })
  const pluginOf = (overrides: object) => taskPlugin([csi], '/state', task(overrides))

  it('says what a task registers, in order, where its socket is and with which options', () => {
    const plugin = pluginOf({ csiPlugin: { id: 'ebs', type: 'monolith', stagePublishBaseDir: '/vol' } })
    expect(plugin).to.deep.include({
      kind: csi,
      refs: [
        { type: 'csi-controller', name: 'ebs', allocId: 'a1' },
        { type: 'csi-node', name: 'ebs', allocId: 'a1' },
      ],
      socketPath: '/state/csi/plugins/a1/driver/csi.sock',
      options: { mountPoint: '/state/csi/volumes/ebs', containerMountPoint: '/vol', taskName: 'driver' },
    })
  })

  it('tells a channel those options that its kind names, and no other', () => {
    const grpc = grpcKind()
    const plugin = taskPlugin([csi, grpc], '/state', task({ plugin: { kind: 'grpc', id: 'web', service: 'acme.Web' } }))
    expect(plugin).to.deep.include({
      refs: [{ type: 'grpc', name: 'web', allocId: 'a1' }],
      socketPath: '/state/grpc/plugins/a1/driver/grpc.sock',
      options: { service: 'acme.Web', taskName: 'driver' },
      channelOptions: { service: 'acme.Web' },
    })
    expect(pluginOf({ csiPlugin: { id: 'ebs', type: 'node' } })?.channelOptions).to.deep.equal({})
  })

  it('takes csiPlugin for the short form of a plugin of that kind', () => {
    const long = pluginOf({ plugin: { kind: 'csi', id: 'ebs', type: 'node' } })
    expect(long).to.deep.equal(pluginOf({ csiPlugin: { id: 'ebs', type: 'node' } }))
  })

  it('is nothing for a task that is no plugin', () => {
    expect(pluginOf({})).to.equal(undefined)
  })

  const refused: readonly (readonly [field: string, overrides: object])[] = [
    ['task.plugin.kind', { plugin: { kind: 'toy', id: 'x' } }],
    ['task.plugin.kind', { plugin: {} }],
    ['csiPlugin.id', { csiPlugin: { type: 'node' } }],
    ['csiPlugin', { csiPlugin: null }],
    ['task.upgrade', { upgrade: 'rolling', csiPlugin: { id: 'ebs', type: 'node' } }],
    ['task.allocId', { allocId: '', csiPlugin: { id: 'ebs', type: 'node' } }],
  ]
  for (const [field, overrides] of refused)
    it(`refuses ${JSON.stringify(overrides)} naming ${field}`, () => {
      expect(() => pluginOf(overrides))
        .to.throw(PlugstreamError)
        .with.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
    })

  it('refuses a socket path that cannot be made short enough', () => {
    const stateDir = `/${'s'.repeat(100)}`
    expect(() => taskPlugin([csi], stateDir, task({ csiPlugin: { id: 'ebs', type: 'node' } })))
      .to.throw(PlugstreamError)
      .with.include({ code: 'ERR_SOCKET_PATH' })
  })
})
