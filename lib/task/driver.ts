import type { RestartPolicy } from './restart-policy.js'
import type { TaskJournal } from './task-record.js'
import type { PluginTask, TaskResources } from './task.js'

/** A task to run: what a plugin task says of itself, and the command that is run for it. */
export interface TaskSpec extends PluginTask {
  /** Program and arguments; no shell. */
  command: readonly [string, ...string[]]
  /** Working directory. Default: the host's. */
  cwd?: string | undefined
  /** What to do when it exits. Fields left out come from `defaultRestartPolicy`. */
  restart?: Partial<RestartPolicy> | undefined
  /** How long it may take to end after SIGTERM before it is killed, in ms. Default: 5 000. */
  stopGraceMs?: number | undefined
}

/** How a run of a task ended. An exit code is a value, not an error. */
export interface TaskExit {
  code: number | null
  signal: string | null
  /** Where more is known: `out of memory`. Told as the reason of the exit. */
  reason?: string
}

/** One run of a task. */
export interface TaskHandle {
  readonly pid: number | undefined
  /** Resolves when the task itself has ended, though what it started may live on; never rejects. */
  readonly exit: Promise<TaskExit>
  /**
   * Asks the task and all it started to end (SIGTERM), and ends what is left after `graceMs` (SIGKILL). Resolves when nothing is left
   * (zombies not counted), also where the task itself had ended before. Idempotent: a second call joins the first.
   */
  stop(graceMs: number): Promise<TaskExit>
  /** Closes what the host holds of the run, without ending it. To be called when a run is over too; idempotent. */
  release(): void
  /** Looks at once whether the run is still there, where nobody tells of its end: something hints that it is not. */
  look?(): void
  /** The last bytes of what it wrote, for people; empty after `release`. */
  tail(stream: 'stdout' | 'stderr', maxBytes: number): Promise<string>
}

/** Something that can run tasks: processes, containers. Passes the driver suite of `plugstream/conformance`. */
export interface TaskDriver {
  /**
   * Resolves once the run has begun. Where a journal is given, it is put on record before it begins, so that the next host finds it.
   * @throws ERR_TASK_SPAWN where it cannot begin, ERR_CONTAINER where it cannot have its container, ERR_STORE_WRITE where it cannot be put
   * on record; it has not begun then.
   */
  start(spec: TaskSpec, resources: TaskResources, journal?: TaskJournal): Promise<TaskHandle>
  /**
   * The run of this task that an earlier host has left, where there is one: it goes on. What is left of another one (a task that was
   * given otherwise then) is ended first, and there is none.
   */
  adopt?(spec: TaskSpec, journal?: TaskJournal): Promise<TaskHandle | undefined>
}
