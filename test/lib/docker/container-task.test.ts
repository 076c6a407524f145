import { expect } from 'chai'
import { readContainer } from '../../../lib/docker/container-task.js'
import { PlugstreamError } from '../../../lib/errors.js'

const image = 'example.org/driver:1'
const mount = { hostPath: '/a', taskPath: '/b', readonly: true, propagation: 'private' }

describe('the container block of a task', () => {
  it('is taken as it is', () => {
    const whole = {
      image,
      pull: 'never',
      user: '1000:1000',
      network: 'host',
      privileged: true,
      capabilities: ['SYS_ADMIN'],
      devices: ['/dev/fuse'],
      memoryBytes: 1e8,
      cpus: 0.5,
      pidsLimit: 100,
      mounts: [mount],
    }
    expect(readContainer({ image })).to.deep.equal({ image })
    expect(readContainer(whole)).to.equal(whole)
  })

  const bad: [field: string, block: unknown][] = [
    ['container', undefined],
    ['container', 'alpine'],
    ['container', [image]],
    ['container.image', {}],
    ['container.image', { image: '' }],
    ['container.pull', { image, pull: 'always' }],
    ['container.user', { image, user: 1000 }],
    ['container.network', { image, network: '' }],
    ['container.privileged', { image, privileged: 'yes' }],
    ['container.capabilities', { image, capabilities: 'SYS_ADMIN' }],
    ['container.devices', { image, devices: [''] }],
    ['container.memoryBytes', { image, memoryBytes: '1g' }],
    ['container.cpus', { image, cpus: 0 }],
    ['container.pidsLimit', { image, pidsLimit: Infinity }],
    ['container.mounts', { image, mounts: [{ ...mount, propagation: 'rshared' }] }],
    ['container.mounts', { image, mounts: [{ ...mount, readonly: undefined }] }],
    ['container.memory', { image, memory: 1 }],
  ]
  for (const [field, block] of bad)
    it(`is refused, naming ${field}, where it is ${JSON.stringify(block)}`, () => {
      expect(() => readContainer(block))
        .to.throw(PlugstreamError, field)
        .that.deep.includes({ code: 'ERR_OPTION_INVALID', details: { field } })
    })
})
