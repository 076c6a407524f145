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

  /** @param since Unix ms of what is carried already; 0 is nothing. */
  constructor(container: Dockerode.Container, sinks: LogSinks, since: number) {
    this.#container = container
    this.#sinks = sinks
    this.drained = this.#carryAll(since)
  }

  tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string> {
    return this.#sinks[stream].tail(maxBytes)
  }

  close(): void {
    this.#left.abort()
    for (const sink of Object.values(this.#sinks)) sink.close().catch(this.#failed)
  }

  async #carryAll(since: number): Promise<void> {
    const { signal } = this.#left
    for (let from = since; !signal.aborted; from = Date.now()) {
      try {
        await this.#carry(from, signal)
        if (!(await this.#container.inspect({ abortSignal: signal })).State.Running) return
      } catch (failure) {
        if (signal.aborted || statusOf(failure) === 404) return
        this.#failed(failure)
      }
      await delay(engineAgainMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #carry(since: number, abortSignal: AbortSignal): Promise<void> {
    const options = { follow: true as const, stdout: true, stderr: true, abortSignal }
    const stream = await this.#container.logs({ ...options, ...(since > 0 && { since: since / 1_000 }) })
    for await (const { output, bytes } of frames(stream as AsyncIterable<Buffer>))
      await this.#sinks[output].append(bytes)
  }

  readonly #failed = (failure: unknown): void => log('logs of %s: %s', this.#container.id, messageOf(failure))
}
