import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { groupLookMaxMs, groupLookMs, killPatienceMs, logLookMs } from '../defaults.js'
import { messageOf } from '../errors.js'
import { logger } from '../log.js'
import type { TaskExit, TaskHandle } from './driver.js'
import type { LogFile } from './log-file.js'
import { ProcessGroup } from './process-group.js'
import type { TaskRef } from './task.js'

const log = logger('task')

/** One process that has begun, with the group it leads and its two log files. To be made in the turn that tells of its spawn. */
export class ProcessHandle implements TaskHandle {
  readonly pid: number
  readonly exit: Promise<TaskExit>
  readonly #name: string
  readonly #child: ChildProcess
  readonly #group: ProcessGroup
  readonly #logs: Readonly<Record<'stdout' | 'stderr', LogFile>>
  readonly #looks: NodeJS.Timeout
  #stopping: Promise<TaskExit> | undefined

  constructor(task: TaskRef, child: ChildProcess, pid: number, logs: Readonly<Record<'stdout' | 'stderr', LogFile>>) {
    this.pid = pid
    this.#name = `${task.allocId}/${task.taskName} (${pid})`
    this.#child = child
    this.#group = new ProcessGroup(pid)
    this.#logs = logs
    this.#looks = setInterval(() => this.#trim(), logLookMs).unref()
    log('%s began', this.#name)
    this.exit = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#group.leaderReaped()
        clearInterval(this.#looks)
        this.#trim()
        log('%s exited: code %s, signal %s', this.#name, code, signal)
        resolve({ code, signal })
      })
    })
  }

  stop(graceMs: number): Promise<TaskExit> {
    this.#stopping ??= this.#stop(graceMs)
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<TaskExit> {
    if (this.#group.signal('SIGTERM')) {
      this.#group.signal('SIGCONT') // one that was halted hears nothing before
      if (!(await this.#emptyWithin(graceMs))) await this.#kill()
    }
    return this.exit
  }

  async #kill(): Promise<void> {
    log('%s outlived its grace; killed', this.#name)
    this.#group.signal('SIGKILL')
    if (await this.#emptyWithin(killPatienceMs)) return
    // Stuck in the kernel, as on a file server that is gone. It ends when that answers; until then the host's process may end by itself.
    log('%s survives SIGKILL: %o', this.#name, await this.#group.alive())
    this.#child.unref()
    await this.#emptyWithin(Infinity, false)
  }

  /** The leader tells when it ends; for the others there is only looking. */
  async #emptyWithin(limitMs: number, ref = true): Promise<boolean> {
    const endsAt = performance.now() + limitMs
    const overtime = new AbortController()
    const leaderGone = this.exit.then(() => true)
    const limit = limitMs === Infinity ? leaderGone : sleep(limitMs, ref, overtime.signal).then(() => false)
    const gone = await Promise.race([leaderGone, limit])
    overtime.abort()
    if (!gone) return false
    for (let pauseMs = groupLookMs; (await this.#group.alive()).length > 0; pauseMs *= 2) {
      const leftMs = endsAt - performance.now()
      if (leftMs <= 0) return false
      await sleep(Math.min(pauseMs, groupLookMaxMs, leftMs), ref)
    }
    return true
  }

  release(): void {
    clearInterval(this.#looks)
    this.#child.unref()
    for (const file of Object.values(this.#logs)) file.close().catch(this.#logFailed)
  }

  tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string> {
    return this.#logs[stream].tail(maxBytes)
  }

  #trim(): void {
    for (const file of Object.values(this.#logs)) file.trim().catch(this.#logFailed)
  }

  readonly #logFailed = (failure: unknown): void => log('%s: its log file: %s', this.#name, messageOf(failure))
}

/** Ends early, and without a word, when the signal is aborted. */
async function sleep(ms: number, ref: boolean, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, { ref, ...(signal ? { signal } : {}) }).catch(() => undefined)
}
