import { expect } from 'chai'
import { containerLabels, containerName, hashOfSpec, taskOf } from '../../../lib/docker/labels.js'
import type { TaskSpec } from '../../../lib/task/driver.js'

const spec: TaskSpec = {
  allocId: 'ebs-1',
  taskName: 'driver',
  isolation: 'image',
  command: ['/driver'],
  csiPlugin: { id: 'ebs', type: 'node' },
  env: { TOKEN: 'secret' },
}

describe('the labels of a container', () => {
  it('tell the task again, without its variables', () => {
    const labels = containerLabels('h', spec)
    const { allocId, taskName, isolation, csiPlugin } = spec
    expect(taskOf(labels)).to.deep.equal({ allocId, taskName, isolation, csiPlugin })
    expect(JSON.stringify(labels)).to.not.include('secret')
  })

  it('tell of a plugin of any kind, and of a task that is none', () => {
    const plugin = { kind: 'greeter', id: 'g', tongue: 'en' }
    const task = { allocId: 'a', taskName: 't', isolation: 'none', plugin } as const
    expect(taskOf(containerLabels('h', task))).to.deep.equal(task)
    expect(taskOf({ 'plugstream.alloc': 'a', 'plugstream.task': 't' })).to.deep.equal({
      allocId: 'a',
      taskName: 't',
      isolation: 'image',
    })
  })

  it('tell of no task where they are not those of one', () => {
    expect(taskOf({})).to.equal(undefined)
    expect(taskOf({ 'plugstream.alloc': 'a' })).to.equal(undefined)
    expect(taskOf({ 'plugstream.alloc': 'a', 'plugstream.task': 't', 'plugstream.plugin': '{' })).to.equal(undefined)
  })
})

describe('the name of a container', () => {
  it('is one for each task of each host, of characters that engines take', () => {
    const tasks = [
      ['h', 'a', 't'],
      ['h', 'a-t', 't'],
      ['h', 'a', 't-t'],
      ['g', 'a', 't'],
      ['h', 'ä/日', '🚀'],
      ['h', 'a'.repeat(300), 't'],
    ] as const
    const names = tasks.map(([hostId, allocId, taskName]) => containerName(hostId, { allocId, taskName }))
    expect(new Set(names).size).to.equal(tasks.length)
    for (const name of names) expect(name).to.match(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/)
  })
})

describe('the hash of a task', () => {
  it('is the same whatever the order of its fields, and another for every other task', () => {
    const { env, ...rest } = spec
    expect(hashOfSpec({ env: env!, ...rest })).to.equal(hashOfSpec(spec))
    expect(hashOfSpec({ ...spec, cwd: undefined })).to.equal(hashOfSpec(spec))
    expect(hashOfSpec({ ...spec, env: { TOKEN: 'other' } })).to.not.equal(hashOfSpec(spec))
    expect(hashOfSpec({ ...spec, command: ['/driver', ''] })).to.not.equal(hashOfSpec(spec))
  })
})
