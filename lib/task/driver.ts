import type { PluginTask, TaskResources } from './task.js'
import type { RestartPolicy } from './restart-policy.js'

/** A task to run: what a plugin task says of itself, and the command that is run for it. */
export interface TaskSpec extends PluginTask {
  /** Program and arguments; no shell. */
  command: readonly [string, ...string[]]
  /** Working directory. Default: the directory the log files are in. */
  cwd?: string
  /** What to do when it exits. Fields left out come from `defaultRestartPolicy`. */
  restart?: Partial<RestartPolicy>
  /** How long it may take to end after SIGTERM before it is killed. Default: 5 000. */
  stopGraceMs?: number
}

/** How a run of a task ended. An exit code is a value, not an error. */
export interface TaskExit {
  code: number | null
  signal: string | null
}

/** One run of a task. */
export interface TaskHandle {
  readonly pid: number | undefined
  /** Resolves when the run has ended, never rejects. */
  readonly exit: Promise<TaskExit>
  /**
   * SIGTERM to the whole process group, then SIGKILL after `graceMs`. Resolves when nothing of the group is left (zombies not counted).
   * Idempotent: a second call joins the first.
   */
  stop(graceMs: number): Promise<TaskExit>
  /** Lets go of the run without ending it. */
  release(): void
  /** The last bytes of what it wrote, for the message of an error. */
  tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string>
}

/** Something that can run tasks: processes, containers. Passes the driver suite of `plugstream/conformance`. */
export interface TaskDriver {
  /**
   * Resolves once the run has begun.
   * @throws ERR_TASK_SPAWN where it cannot begin.
   */
  start(spec: TaskSpec, resources: TaskResources): Promise<TaskHandle>
}
