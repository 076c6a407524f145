import { setTimeout as delay } from 'node:timers/promises'
import { groupLookMaxMs, groupLookMs, killPatienceMs, logLookMs } from '../defaults.js'
import { messageOf } from '../errors.js'
import { logger } from '../log.js'
import type { TaskExit, TaskHandle } from './driver.js'
import type { Leader } from './leader.js'
import type { LogFile } from './log-file.js'
import type { TaskRef } from './task.js'

const log = logger('task')

/** One process that has begun, with the group it leads and its two log files. To be made in the turn in which its leader was. */
export class ProcessHandle implements TaskHandle {
  readonly pid: number
  readonly exit: Promise<TaskExit>
  readonly #name: string
  readonly #leader: Leader
  readonly #logs: Readonly<Record<'stdout' | 'stderr', LogFile>>
  readonly #looks: NodeJS.Timeout
  #stopping: Promise<TaskExit> | undefined

  constructor(task: TaskRef, leader: Leader, logs: Readonly<Record<'stdout' | 'stderr', LogFile>>) {
    this.pid = leader.pid
    this.#name = `${task.allocId}/${task.taskName} (${leader.pid})`
    this.#leader = leader
    this.#logs = logs
    this.#looks = setInterval(() => this.#trim(), logLookMs).unref()
    this.exit = new Promise((resolve) => {
      leader.onExit((exit) => {
        clearInterval(this.#looks)
        this.#trim()
        log('%s exited: code %s, signal %s', this.#name, exit.code, exit.signal)
        resolve(exit)
      })
    })
  }

  look(): void {
    this.#leader.look?.()
  }

  stop(graceMs: number): Promise<TaskExit> {
    this.#stopping ??= this.#stop(graceMs)
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<TaskExit> {
    const { group } = this.#leader
    if (await group.signal('SIGTERM')) {
      await group.signal('SIGCONT') // one that was halted hears nothing before
      if (!(await this.#emptyWithin(graceMs))) await this.#kill()
    }
    return this.exit
  }

  async #kill(): Promise<void> {
    log('%s outlived its grace; killed', this.#name)
    await this.#leader.group.signal('SIGKILL')
    if (await this.#emptyWithin(killPatienceMs)) return
    // Stuck in the kernel, as on a file server that is gone. It ends when that answers; until then the host's process may end by itself.
    log('%s survives SIGKILL: %o', this.#name, await this.#leader.group.alive())
    this.#leader.unref()
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
    for (let pauseMs = groupLookMs; (await this.#leader.group.alive()).length > 0; pauseMs *= 2) {
      const leftMs = endsAt - performance.now()
      if (leftMs <= 0) return false
      await sleep(Math.min(pauseMs, groupLookMaxMs, leftMs), ref)
    }
    return true
  }

  release(): void {
    clearInterval(this.#looks)
    this.#leader.release()
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
