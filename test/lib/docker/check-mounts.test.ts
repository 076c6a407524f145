import { expect } from 'chai'
import { checkMounts } from '../../../lib/docker/check-mounts.js'
import type { PlugstreamError } from '../../../lib/errors.js'
import type { TaskMount } from '../../../lib/task/task.js'
import { needs } from '../../support/needs.js'

const both = (hostPath: string): TaskMount => ({
  hostPath,
  taskPath: '/t',
  readonly: false,
  propagation: 'bidirectional',
})
const table = [
  '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
  '31 27 0:29 / /var/lib rw shared:7 - tmpfs tmpfs rw',
  '32 31 0:30 / /var/lib/over rw shared:8 master:1 - tmpfs tmpfs rw',
  '33 32 0:31 / /var/lib/over rw - tmpfs tmpfs rw',
  '34 27 0:32 / /with\\040blank rw shared:9 - tmpfs tmpfs rw',
  '',
].join('\n')

async function refusal(hostPath: string): Promise<PlugstreamError | undefined> {
  const ports = { table: () => Promise.resolve(table), resolve: (path: string) => Promise.resolve(path) }
  return checkMounts([both(hostPath)], ports).then(
    () => undefined,
    (failure: unknown) => failure as PlugstreamError,
  )
}

describe('mounts that are to go both ways', () => {
  before(function () {
    needs(this, process.platform === 'linux', 'only Linux has mounts that are shared')
  })

  it('may be on a shared mount, and below it', async () => {
    for (const path of ['/var/lib', '/var/lib/agent/csi', '/with blank/agent'])
      expect(await refusal(path), path).to.equal(undefined)
  })

  for (const [path, mountPoint] of [
    ['/srv/agent', '/'],
    ['/var/library', '/'],
    ['/var/lib/over/agent', '/var/lib/over'],
  ] as const)
    it(`may not be on ${mountPoint}, which is not shared, as ${path} is; what to do is told`, async () => {
      const failure = await refusal(path)
      expect(failure).to.deep.include({ code: 'ERR_CONTAINER', details: { path, mountPoint } })
      expect(failure?.message).to.include(`mount --make-rshared ${mountPoint} `).and.include('mount --make-shared D')
    })
})

describe('mounts of a container', () => {
  const refusalOf = (mount: Partial<TaskMount>): Promise<unknown> =>
    checkMounts([{ ...both('/'), propagation: 'private', ...mount }]).then(
      () => undefined,
      (failure: unknown) => failure,
    )

  it('may be of anything that is there', async () => {
    expect(await refusalOf({})).to.equal(undefined)
    expect(await refusalOf({ hostPath: '/dev/null' })).to.equal(undefined)
  })

  for (const mount of [
    { hostPath: '/no/such' },
    { hostPath: '/dev/null/x' },
    { hostPath: '/a:b' },
    { taskPath: '/a:b' },
  ])
    it(`may not be ${JSON.stringify(mount)}`, async () => {
      const [path] = Object.values(mount)
      expect(await refusalOf(mount)).to.deep.include({ code: 'ERR_CONTAINER', details: { path } })
    })
})
