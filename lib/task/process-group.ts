import { isAlive, listProcesses } from './process-sight.js'

/**
 * The processes a task consists of: the one that was begun, as leader of a group of its own, and what it started, unless that left the
 * group.
 *
 * A group's number is its leader's pid, and the system gives it to nobody else while the leader is not reaped or the group has a
 * member. After that it may be a stranger's, so nothing is signalled once the group was seen empty; and once the leader was reaped,
 * a process of that very pid is a stranger too.
 */
export class ProcessGroup {
  readonly #id: number
  #leader: 'there' | 'reaped' = 'there'
  #gone = false

  constructor(id: number) {
    this.#id = id
  }

  /** To be called in the very turn in which the leader is reaped: what is left then is still surely the group's. */
  leaderReaped(): void {
    this.#leader = 'reaped'
    this.#reach(0)
  }

  /** Signals all of them. False: nobody is there any more. */
  signal(name: 'SIGTERM' | 'SIGCONT' | 'SIGKILL'): boolean {
    return this.#reach(name)
  }

  /**
   * The pids that are alive; zombies are not. Where the system does not list processes, or will not, the group's own number stands for
   * whoever is there.
   */
  async alive(): Promise<readonly number[]> {
    // Zombies hold the number for as long as nobody reaps them. A list is no picture of one moment: a member that began while it was
    // read may be missing, so that two in a row have to say so.
    for (let look = 0; look < 2; look++) {
      if (!this.#reach(0)) return []
      const members = (await listProcesses().catch(() => [])).filter(({ group }) => group === this.#id)
      const alive = members.filter(isAlive).map(({ pid }) => pid)
      if (alive.length > 0) return alive
      if (members.length === 0) return this.#reach(0) ? [this.#id] : []
    }
    return []
  }

  #reach(signal: 0 | 'SIGTERM' | 'SIGCONT' | 'SIGKILL'): boolean {
    if (!this.#gone) this.#gone = (this.#leader === 'reaped' && exists(this.#id)) || !exists(-this.#id, signal)
    return !this.#gone
  }
}

/** Whether there is such a process (or, negative, group). One that may not be signalled is there. */
function exists(pid: number, signal: 0 | NodeJS.Signals = 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (failure) {
    return (failure as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
