import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import { engineAgainMs } from '../defaults.js'
import { messageOf } from '../errors.js'
import { logger } from '../log.js'
import { statusOf } from './failure.js'
import { frames } from './frames.js'

const log = logger('docker')

/** Where one of the two outputs of a container goes; a `LogFile` is one. */
export interface LogSink {
  append(bytes: Uint8Array): Promise<void>
  tail(maxBytes: number): Promise<string>
  close(): Promise<void>
}

export type LogSinks = Readonly<Record<'stdout' | 'stderr', LogSink>>

/**
 * Carries what a container writes from the engine's own copy to files of the host, so that a host that is halted, or gone, does not stop the
 * container. Where the engine goes away meanwhile it is read on when it is back.
 */
export class ContainerLogs {
  /** Resolves when all that was written is carried, or nothing more will be; never rejects. */
  readonly drained: Promise<void>
  readonly #container: Dockerode.Container
  readonly #sinks: LogSinks
  readonly #left = new AbortController()
  #carriedAt: number

  /** @param since Unix ms of what is carried already; 0 is nothing. */
  constructor(container: Dockerode.Container, sinks: LogSinks, since: number) {
    this.#container = container
    this.#sinks = sinks
    this.#carriedAt = since
    this.drained = this.#carryAll()
  }

  tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string> {
    return this.#sinks[stream].tail(maxBytes)
  }

  close(): void {
    this.#left.abort()
    for (const sink of Object.values(this.#sinks)) sink.close().catch(this.#failed)
  }

  async #carryAll(): Promise<void> {
    const { signal } = this.#left
    while (await this.#hasMore(signal)) await delay(engineAgainMs, undefined, { signal }).catch(() => undefined)
  }

  /** Carries until the engine's stream ends, and says whether it has to be read on. */
  async #hasMore(abortSignal: AbortSignal): Promise<boolean> {
    try {
      // Engines count in seconds: what was written within the last one comes twice, so that nothing is missed.
      const since = this.#carriedAt > 0 ? { since: Math.floor(this.#carriedAt / 1_000) } : {}
      const options = { follow: true as const, stdout: true, stderr: true, abortSignal, ...since }
      const stream = (await this.#container.logs(options)) as AsyncIterable<Buffer>
      for await (const { output, bytes } of frames(stream)) {
        await this.#sinks[output].append(bytes)
        this.#carriedAt = Date.now()
      }
      return (await this.#container.inspect({ abortSignal })).State.Running
    } catch (failure) {
      if (abortSignal.aborted || statusOf(failure) === 404) return false
      this.#failed(failure)
      return true
    }
  }

  readonly #failed = (failure: unknown): void => log('logs of %s: %s', this.#container.id, messageOf(failure))
}
