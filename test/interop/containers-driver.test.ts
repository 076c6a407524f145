import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskDriver } from '../../lib/task/driver.js'
import { dockerDriver, type ContainerTask } from '../../streams/docker.js'
import { taskDriverSuite } from '../conformance/task-driver-suite.js'
import { image, needsContainers, Podman } from './podman.js'

describe('containers', function () {
  this.timeout(60_000)
  let podman: Podman | undefined
  before(async function () {
    needsContainers(this)
    podman = await Podman.start()
  })
  after(() => podman?.[Symbol.asyncDispose]())

  taskDriverSuite({ describe, it }, 'containers', {
    make: async () => {
      const directory = await realpath(await mkdtemp(join(tmpdir(), 'plugstream-')))
      const driver = dockerDriver({ hostId: directory, docker: podman!.docker, logDir: join(directory, 'logs') })
      const mount = { hostPath: directory, taskPath: directory, readonly: false, propagation: 'private' } as const
      const container = { image, network: 'none', mounts: [mount] }
      const inContainers: TaskDriver = {
        start: (spec, resources) => driver.start({ ...spec, container } as ContainerTask, resources),
      }
      return { driver: inContainers, directory }
    },
    dispose: ({ directory }) => rm(directory, { recursive: true }),
    endsTogether: true,
  })
})
