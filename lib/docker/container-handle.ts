import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import { engineAgainMs, logDrainMs } from '../defaults.js'
import { messageOf, PlugstreamError } from '../errors.js'
import { logger } from '../log.js'
import type { TaskExit, TaskHandle } from '../task/driver.js'
import { exitOf } from './container-exit.js'
import type { ContainerLogs } from './container-logs.js'
import { statusOf, wordsOf } from './failure.js'

const log = logger('docker')

/** One container that has begun, and is removed when it is stopped. */
export class ContainerHandle implements TaskHandle {
  readonly pid: number | undefined
  readonly exit: Promise<TaskExit>
  readonly #container: Dockerode.Container
  readonly #logs: ContainerLogs
  readonly #released = new AbortController()
  #over = false
  #stopping: Promise<TaskExit> | undefined

  constructor(container: Dockerode.Container, pid: number | undefined, logs: ContainerLogs) {
    this.#container = container
    this.#logs = logs
    this.pid = pid
    this.exit = endOf(container, this.#released.signal).then((exit) => {
      this.#over = true
      return exit
    })
  }

  stop(graceMs: number): Promise<TaskExit> {
    this.#stopping ??= this.#stop(graceMs).catch((failure: unknown) => {
      this.#stopping = undefined // whoever asks again has it tried again
      throw new PlugstreamError('ERR_CONTAINER', `stopping the container ${this.#container.id}: ${wordsOf(failure)}`, {
        cause: failure,
        retryable: true,
      })
    })
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<TaskExit> {
    const released = this.#released.signal.aborted
    const exit = await endContainer(this.#container, graceMs, released ? undefined : this.exit)
    await within(logDrainMs, this.#logs.drained) // they go with the container
    await this.#container.remove({ force: true, v: true }).catch(unlessGone)
    return exit
  }

  release(): void {
    this.#released.abort()
    this.#logs.close()
  }

  async tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string> {
    if (this.#over) await within(logDrainMs, this.#logs.drained)
    return this.#logs.tail(stream, maxBytes)
  }
}

/** Asks a container to end, ends it after its grace, and gives how it has ended. It is not removed. */
export async function endContainer(
  container: Dockerode.Container,
  graceMs: number,
  end: Promise<TaskExit> = endOf(container),
): Promise<TaskExit> {
  await sendSignal(container, 'SIGTERM')
  if (!(await within(graceMs, end))) {
    log('%s outlived its grace; killed', container.id)
    await sendSignal(container, 'SIGKILL')
  }
  return end
}

/** How a container ends. Never rejects: where the engine does not answer it is asked again. Once `signal` is aborted nothing comes. */
async function endOf(container: Dockerode.Container, signal?: AbortSignal): Promise<TaskExit> {
  const given = signal ? { abortSignal: signal } : {}
  for (;;) {
    try {
      await container.wait(given)
      const { State } = await container.inspect(given)
      if (!State.Running) return exitOf(State)
    } catch (failure) {
      if (statusOf(failure) === 404) return { code: null, signal: null, reason: 'its container was removed' }
      if (signal?.aborted) return new Promise(() => undefined)
      log('waiting for %s: %s', container.id, messageOf(failure))
    }
    await delay(engineAgainMs, undefined, signal ? { signal } : {}).catch(() => undefined)
    if (signal?.aborted) return new Promise(() => undefined)
  }
}

/** Whether something ends in time. */
async function within(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController()
  const late = delay(limitMs, false, { signal: over.signal }).catch(() => false)
  return Promise.race([work.then(() => true), late]).finally(() => over.abort())
}

function unlessGone(failure: unknown): void {
  if (statusOf(failure) !== 404) throw failure
}

/** Engines refuse it in words of their own where the container does not run, so that is looked at. */
async function sendSignal(container: Dockerode.Container, signal: string): Promise<void> {
  try {
    await container.kill({ signal })
  } catch (failure) {
    const now = await container.inspect().catch(unlessGone)
    if (now?.State.Running) throw failure
  }
}
