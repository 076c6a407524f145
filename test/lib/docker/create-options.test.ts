import { expect } from 'chai'
import { createOptions, type ContainerPlan } from '../../../lib/docker/create-options.js'
import type { TaskMount } from '../../../lib/task/task.js'

const both: TaskMount = { hostPath: '/host', taskPath: '/task', readonly: false, propagation: 'bidirectional' }

function plan(fields: Partial<ContainerPlan> = {}): ContainerPlan {
  return {
    hostId: 'h',
    spec: { allocId: 'a', taskName: 't', isolation: 'image', command: ['/driver', '--node'] },
    settings: { image: 'i' },
    resources: { socketPath: '/s', env: { CSI_ENDPOINT: 'unix:///csi/csi.sock', MODE: 'given' }, mounts: [both] },
    maxLogBytes: 1_000,
    ...fields,
  }
}

describe('what the engine is asked to make', () => {
  it('is the command in place of the entry point, with the variables of the task before those of its host', () => {
    const { spec } = plan()
    const options = createOptions(plan({ spec: { ...spec, cwd: '/work', env: { MODE: 'own' } } }))
    expect(options).to.deep.include({
      Image: 'i',
      Entrypoint: ['/driver'],
      Cmd: ['--node'],
      WorkingDir: '/work',
      Env: ['CSI_ENDPOINT=unix:///csi/csi.sock', 'MODE=own'],
    })
  })

  it('has mounts that go both ways, and such that do not', () => {
    const mounts: TaskMount[] = [{ hostPath: '/dev', taskPath: '/dev', readonly: true, propagation: 'private' }]
    const { HostConfig } = createOptions(plan({ settings: { image: 'i', mounts } }))
    expect(HostConfig?.Binds).to.deep.equal(['/host:/task:rw,rshared', '/dev:/dev:ro,rprivate'])
  })

  it('shows a task without isolation the paths of its host', () => {
    const { spec } = plan()
    const { HostConfig } = createOptions(plan({ spec: { ...spec, isolation: 'none' } }))
    expect(HostConfig?.Binds).to.deep.equal(['/host:/host:rw,rshared'])
  })

  it('has no limits and no rights unless they are asked for', () => {
    const { HostConfig } = createOptions(plan())
    expect(HostConfig).to.include({ Privileged: false, Init: true })
    expect(HostConfig).to.not.have.any.keys('Memory', 'NanoCpus', 'PidsLimit', 'NetworkMode', 'RestartPolicy')
    const settings = { image: 'i', memoryBytes: 1e8, cpus: 1.5, pidsLimit: 9, network: 'host', privileged: true }
    const limited = createOptions(plan({ settings: { ...settings, devices: ['/dev/x'], capabilities: ['SYS_ADMIN'] } }))
    expect(limited.HostConfig).to.deep.include({
      Memory: 1e8,
      NanoCpus: 1.5e9,
      PidsLimit: 9,
      NetworkMode: 'host',
      Privileged: true,
      Devices: [{ PathOnHost: '/dev/x', PathInContainer: '/dev/x', CgroupPermissions: 'rwm' }],
      CapAdd: ['SYS_ADMIN'],
    })
  })
})
