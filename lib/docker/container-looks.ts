import type Dockerode from 'dockerode'
import { exitOf } from './container-exit.js'
import type { ContainerHint, ContainerSight } from './container-sight.js'
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

  /** Ends, or throws, when the engine does. */
  async *hints(abortSignal: AbortSignal): AsyncGenerator<ContainerHint> {
    const stream = await this.#docker.getEvents({ filters: { type: ['container'] }, abortSignal })
    yield { kind: 'connected' }
    let rest = ''
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const lines = (rest + chunk.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.trim() === '') continue
        const { Action = '', Actor } = JSON.parse(line) as EngineEvent
        if (changes.includes(Action) && Actor?.ID && this.#isOurs(Actor.Attributes ?? {}))
          yield { kind: 'changed', id: Actor.ID }
      }
    }
  }

  async all(abortSignal: AbortSignal): Promise<ContainerSight[]> {
    const filters = { label: [labelNames.alloc] }
    const found = await this.#docker.listContainers({ all: true, filters, abortSignal })
    const sights = await Promise.all(found.map(({ Id }) => this.one(Id, abortSignal)))
    return sights.filter((sight) => sight !== undefined)
  }

  async one(id: string, abortSignal: AbortSignal): Promise<ContainerSight | undefined> {
    try {
      const { State, Config, HostConfig } = await this.#docker.getContainer(id).inspect({ abortSignal })
      const task = this.#isOurs(Config.Labels) ? taskOf(Config.Labels) : undefined
      const restart = HostConfig.RestartPolicy?.Name ?? ''
      const isNew = State.StartedAt.startsWith('0001-')
      return (
        task && {
          id,
          task,
          running: State.Running,
          startedAt: isNew ? '' : State.StartedAt,
          pid: State.Pid || undefined,
          exit: exitOf(State),
          restarts: restart !== '' && restart !== 'no',
        }
      )
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
