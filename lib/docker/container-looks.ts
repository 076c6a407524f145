import type Dockerode from 'dockerode'
import { now } from '../clock.js'
import type { TaskLook, TaskSight } from '../task/task-sight.js'
import { exitOf } from './container-exit.js'
import { statusOf } from './failure.js'
import { labelNames, taskOf } from './labels.js'

/** After which the state of a container is another; Docker says `destroy` where Podman says `remove`. */
const changes = ['start', 'restart', 'die', 'died', 'destroy', 'remove']

/** Looks at the containers of an engine that run tasks, of one host or of all. */
export class ContainerLooks {
  readonly #docker: Dockerode
  readonly #hostId: string | undefined

  constructor(docker: Dockerode, hostId: string | undefined) {
    this.#docker = docker
    this.#hostId = hostId
  }

  /** At all of them, then at each to which something happens. Ends, or throws, when the engine does. */
  async *looks(abortSignal: AbortSignal): AsyncGenerator<TaskLook> {
    // An engine may say that it listens a little before it does.
    const since = Math.floor(now() / 1_000)
    const stream = await this.#docker.getEvents({ filters: { type: ['container'] }, since, abortSignal })
    yield { kind: 'all', sights: await this.#all(abortSignal) }
    let rest = ''
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const lines = (rest + chunk.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.trim() === '') continue
        const { Action = '', Actor } = JSON.parse(line) as EngineEvent
        if (!changes.includes(Action) || !Actor?.ID || !this.#isOurs(Actor.Attributes ?? {})) continue
        yield { kind: 'one', id: Actor.ID, sight: await this.#one(Actor.ID, abortSignal) }
      }
    }
  }

  async #all(abortSignal: AbortSignal): Promise<TaskSight[]> {
    const filters = { label: [labelNames.alloc] }
    const found = await this.#docker.listContainers({ all: true, filters, abortSignal })
    const sights = await Promise.all(found.map(({ Id }) => this.#one(Id, abortSignal)))
    return sights.filter((sight) => sight !== undefined)
  }

  async #one(id: string, abortSignal: AbortSignal): Promise<TaskSight | undefined> {
    try {
      const found = await this.#docker.getContainer(id).inspect({ abortSignal })
      const { State, Config } = found
      const task = this.#isOurs(Config.Labels) ? taskOf(Config.Labels) : undefined
      if (!task) return undefined
      return {
        id,
        task,
        running: State.Running && !State.Restarting, // to Docker what waits for its next run is running
        run: runOf(State.StartedAt),
        pid: State.Pid || undefined,
        exit: exitOf(State),
        restarts: isStartedAgain(found),
      }
    } catch (failure) {
      if (statusOf(failure) === 404) return undefined
      throw failure
    }
  }

  #isOurs(labels: Readonly<Record<string, string>>): boolean {
    if (labels[labelNames.alloc] === undefined) return false
    return this.#hostId === undefined || labels[labelNames.host] === this.#hostId
  }
}

interface EngineEvent {
  Action?: string
  Actor?: { ID?: string; Attributes?: Record<string, string> }
}

/** An instant whose fraction engines write as short as they can, as one that sorts as a text. */
export function runOf(startedAt: string): string {
  if (startedAt.startsWith('0001-')) return ''
  const [, seconds = startedAt, fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(startedAt) ?? []
  return `${seconds}.${fraction.padEnd(9, '0')}`
}

/** What an engine will do is told by its rules, since only some say that they are about to. */
export function isStartedAgain({ State, HostConfig, RestartCount }: RestartFacts): boolean {
  if (State.Restarting) return true
  const { Name: rule, MaximumRetryCount: most = 0 } = HostConfig.RestartPolicy ?? {}
  if (rule === 'on-failure') return State.ExitCode !== 0 && (most === 0 || RestartCount < most)
  return rule === 'always' || rule === 'unless-stopped'
}

/** Of `inspect`. */
export interface RestartFacts {
  State: { Restarting: boolean; ExitCode: number }
  HostConfig: { RestartPolicy?: { Name: string; MaximumRetryCount?: number | undefined } | undefined }
  RestartCount: number
}
