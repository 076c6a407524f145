import { adoptedLookMs, groupLookMs } from '../defaults.js'
import type { Leader, TaskProcesses } from './leader.js'
import { isAlive, isSameProcess, listProcesses, seeProcess, ticksNow, type ProcessSight } from './process-sight.js'

/** How the run of a task ended that was nobody's child: the system tells its exit code to its parent alone. */
const unknownExit = { code: null, signal: null }

/**
 * The first process of a task that an earlier host began. It is no child of this one, so its end is seen by looking, and how it ended
 * cannot be known. One that is gone already may have left others of its group behind.
 */
export function adoptedLeader(sight: ProcessSight): Leader {
  const group = new AdoptedGroup(sight)
  let ended: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    if (!ended || group.leaderIsThere()) return
    clearInterval(timer)
    ended()
    ended = undefined
  }
  const lookEvery = (pauseMs: number): void => {
    clearInterval(timer)
    if (ended) timer = setInterval(look, pauseMs)
  }
  return {
    pid: sight.pid,
    group: {
      alive: () => group.alive(),
      signal: (name) => {
        lookEvery(groupLookMs) // it is about to end, and who signals it waits
        return group.signal(name)
      },
    },
    onExit: (heard) => {
      ended = () => heard(unknownExit)
      lookEvery(adoptedLookMs)
      look()
    },
    look,
    unref: () => void timer?.unref(),
    release: () => clearInterval(timer),
  }
}

/**
 * A group's number is its leader's pid. The system gives it to nobody else while the leader is there, a zombie too, or the group has a
 * member. So whoever is in it is of the task while one of those is that was there when the group was last known to be the task's; after
 * that it may be a stranger's, and is not signalled.
 */
class AdoptedGroup implements TaskProcesses {
  #knownAt = ticksNow()

  constructor(private readonly leader: ProcessSight) {}

  /** A zombie is not. */
  leaderIsThere(): boolean {
    const seen = this.#seeLeader()
    return seen !== undefined && isAlive(seen)
  }

  async signal(name: 'SIGTERM' | 'SIGCONT' | 'SIGKILL'): Promise<boolean> {
    if (!this.#seeLeader() && (await this.#members()).length === 0) return false
    try {
      process.kill(-this.leader.pid, name)
      return true
    } catch (failure) {
      return (failure as NodeJS.ErrnoException).code !== 'ESRCH'
    }
  }

  async alive(): Promise<readonly number[]> {
    return (await this.#members()).filter(isAlive).map(({ pid }) => pid)
  }

  #seeLeader(): ProcessSight | undefined {
    const at = ticksNow()
    const seen = seeProcess(this.leader.pid)
    if (!isSameProcess(seen, this.leader)) return undefined
    this.#knownAt = at
    return seen
  }

  async #members(): Promise<ProcessSight[]> {
    const at = ticksNow()
    const held = this.#seeLeader() !== undefined
    const members = (await listProcesses()).filter(({ group }) => group === this.leader.pid)
    if (!held && !members.some(({ startTicks }) => startTicks < this.#knownAt)) return []
    this.#knownAt = at
    return members
  }
}
