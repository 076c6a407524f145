import type { ChildProcess } from 'node:child_process'
import type { TaskExit } from './driver.js'
import { ProcessGroup } from './process-group.js'

/** The processes a task consists of. */
export interface TaskProcesses {
  /** Signals all of them. False: nobody is there any more. */
  signal(name: 'SIGTERM' | 'SIGCONT' | 'SIGKILL'): boolean | Promise<boolean>
  /** The pids that are alive; zombies are not. */
  alive(): Promise<readonly number[]>
}

/** The first process of a task, and the group it leads. */
export interface Leader {
  readonly pid: number
  readonly group: TaskProcesses
  /** To be called once, in the turn in which the leader was made. */
  onExit(heard: (exit: TaskExit) => void): void
  /** Looks at once whether it is there, where nobody tells. */
  look?(): void
  /** The host's process does not stay for it any longer. */
  unref(): void
  /** Nobody hears of its end any more, and the host's process does not stay for it. */
  release(): void
}

/** To be made in the turn that tells of the spawn. */
export function childLeader(child: ChildProcess): Leader {
  const pid = child.pid ?? 0
  const group = new ProcessGroup(pid)
  return {
    pid,
    group,
    onExit: (heard) =>
      void child.once('exit', (code, signal) => {
        group.leaderReaped()
        heard({ code, signal })
      }),
    unref: () => child.unref(),
    release: () => child.unref(),
  }
}
