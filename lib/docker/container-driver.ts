import Dockerode from 'dockerode'
import { Agent } from 'node:http'
import { maxLogBytes as defaultMaxLogBytes, stopGraceMs } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import { fieldsOf, takeOptions } from '../options.js'
import { logger } from '../log.js'
import type { TaskDriver, TaskHandle, TaskSpec } from '../task/driver.js'
import { taskKey, type TaskRef } from '../task/task.js'
import { endContainer, ContainerHandle } from './container-handle.js'
import { ContainerLogs, type LogSinks } from './container-logs.js'
import { checkMounts } from './check-mounts.js'
import { readContainer, type ContainerSettings } from './container-task.js'
import { createOptions, mountsOf, type ContainerPlan } from './create-options.js'
import { startFailure, statusOf, wordsOf } from './failure.js'
import { imagePresent } from './image.js'
import { containerName, hashOfSpec, labelNames, taskOf } from './labels.js'

const log = logger('docker')

/** A client of `dockerode`. */
export type DockerEngine = Dockerode

/** A task that runs in a container. Its `command` takes the place of the image's entry point. */
export interface ContainerTask extends TaskSpec {
  container: ContainerSettings
}

export interface DockerDriverInit {
  /**
   * What this host is called on the engine: the same after a restart, and no other host of the engine's has it. The absolute path of the
   * state directory is such a name.
   */
  hostId: string
  /** The engine. Default: the one of `DOCKER_HOST`, else of `/var/run/docker.sock`. */
  docker?: DockerEngine | undefined
  /**
   * Where the tasks' log files go (`taskLogPaths`); made where it is missing, for its owner alone. Default: files without a name, which
   * can be read through the handle and are gone with the task.
   */
  logDir?: string | undefined
  /** A log file that is longer is trimmed; one older part of at most this size is kept beside it. Default: 10 MiB. */
  maxLogBytes?: number | undefined
}

const fields = fieldsOf<DockerDriverInit>({ hostId: true, docker: true, logDir: true, maxLogBytes: true })

/** A task driver whose runs outlive their host. */
export interface DockerDriver extends TaskDriver {
  /**
   * Takes over the container that an earlier run of this host has left running for the very same task. One that is left otherwise — it has
   * ended, or the task was changed — is ended and removed, and nothing is given.
   *
   * @throws ERR_CONTAINER where the engine does not answer or refuses.
   */
  adopt(spec: TaskSpec): Promise<TaskHandle | undefined>
  /**
   * Ends and removes the containers of this host whose tasks are not among those that are wanted, and gives back which those were. Containers
   * of other hosts, and of nobody, are left alone.
   *
   * @throws ERR_CONTAINER where the engine does not answer or refuses.
   * @example await driver.collect(specs)
   */
  collect(wanted: Iterable<TaskRef>): Promise<TaskRef[]>
}

/** What the driver needs of the tasks' own noun. */
export interface ContainerDriverPorts {
  readTask(spec: TaskSpec): TaskSpec
  /** `writtenAt`: when the files were last written to, Unix ms; 0 where they are new. */
  openLogs(task: TaskRef, logDir: string | undefined, maxBytes: number): Promise<{ sinks: LogSinks; writtenAt: number }>
}

export function containerDriver(init: DockerDriverInit, ports: ContainerDriverPorts): DockerDriver {
  const { hostId, docker = localEngine(), logDir, maxLogBytes = defaultMaxLogBytes } = takeOptions('init', init, fields)
  if (typeof hostId !== 'string' || hostId === '') throw invalidOption('hostId', hostId, 'a text that is not empty')

  const handleOf = async (spec: TaskSpec, container: Dockerode.Container, isNew: boolean): Promise<TaskHandle> => {
    const { State } = await container.inspect()
    const { sinks, writtenAt } = await ports.openLogs(spec, logDir, maxLogBytes)
    const logs = new ContainerLogs(container, sinks, isNew ? 0 : writtenAt)
    return new ContainerHandle(container, State.Pid || undefined, logs)
  }

  const find = async (task: TaskRef): Promise<Dockerode.ContainerInspectInfo | undefined> => {
    const found = await docker.getContainer(containerName(hostId, task)).inspect().catch(undefinedIfGone)
    return found?.Config.Labels[labelNames.host] === hostId ? found : undefined
  }

  const end = async (id: string, graceMs: number): Promise<void> => {
    const container = docker.getContainer(id)
    await endContainer(container, graceMs)
    await container.remove({ force: true, v: true }).catch(undefinedIfGone)
  }

  return {
    async start(given, resources) {
      const { spec, settings } = readSpec(given, ports)
      const plan: ContainerPlan = { hostId, spec, settings, resources, maxLogBytes }
      await checkMounts(mountsOf(plan))
      await asked('looking for containers', async () => {
        const left = await find(spec)
        if (left) await end(left.Id, spec.stopGraceMs ?? stopGraceMs)
      })
      await imagePresent(docker, settings)
      const container = await docker.createContainer(createOptions(plan)).catch((failure: unknown) => {
        throw startFailure(spec, 'make', failure)
      })
      try {
        await programPresent(container, spec)
        await container.start()
        log('%s/%s runs in %s', spec.allocId, spec.taskName, container.id)
        return await handleOf(spec, container, true)
      } catch (failure) {
        await container.remove({ force: true, v: true }).catch(undefinedIfGone)
        throw startFailure(spec, 'start', failure)
      }
    },

    adopt: (given) =>
      asked('looking for containers', async () => {
        const { spec } = readSpec(given, ports)
        const left = await find(spec)
        if (!left) return undefined
        if (left.State.Running && left.Config.Labels[labelNames.spec] === hashOfSpec(spec)) {
          log('%s/%s goes on in %s', spec.allocId, spec.taskName, left.Id)
          return handleOf(spec, docker.getContainer(left.Id), false)
        }
        await end(left.Id, spec.stopGraceMs ?? stopGraceMs)
        return undefined
      }),

    collect: (wanted) =>
      asked('collecting containers', async () => {
        const keep = new Set([...wanted].map(taskKey))
        const filters = { label: [`${labelNames.host}=${hostId}`] }
        const own = await docker.listContainers({ all: true, filters })
        const strays = own.flatMap(({ Id, Labels }) => {
          const task = Labels[labelNames.host] === hostId ? taskOf(Labels) : undefined
          return task && !keep.has(taskKey(task)) ? [{ Id, task }] : []
        })
        await Promise.all(strays.map(({ Id }) => end(Id, stopGraceMs)))
        return strays.map(({ task: { allocId, taskName } }) => ({ allocId, taskName }))
      }),
  }
}

/** Each request has a connection of its own, so that none is left open. */
export function localEngine(): DockerEngine {
  const docker = new Dockerode()
  const modem = docker.modem as { protocol?: string; agent?: Agent }
  if (modem.protocol === 'http') modem.agent = new Agent({ keepAlive: false })
  return docker
}

function readSpec(given: TaskSpec, ports: ContainerDriverPorts): { spec: TaskSpec; settings: ContainerSettings } {
  const spec = ports.readTask(given)
  return { spec, settings: readContainer((spec as Partial<ContainerTask>).container) }
}

/** With an init of the engine's before it, a program that is not there would begin and end with a code, as any other. */
async function programPresent(container: Dockerode.Container, { command: [program] }: TaskSpec): Promise<void> {
  if (!program.startsWith('/')) return
  const found: unknown = await container.infoArchive({ path: program }).catch((failure: unknown) => statusOf(failure))
  if (found === 404) throw new Error('it is not in the image')
}

async function asked<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (failure) {
    if (failure instanceof PlugstreamError) throw failure
    throw new PlugstreamError('ERR_CONTAINER', `${doing}: ${wordsOf(failure)}`, { cause: failure, retryable: true })
  }
}

function undefinedIfGone(failure: unknown): undefined {
  if (statusOf(failure) === 404) return undefined
  throw failure
}
