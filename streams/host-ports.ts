import type { Observable } from 'rxjs'
import type { PlugstreamError } from '../lib/errors.js'
import type { TaskJournal } from '../lib/task/task-record.js'
import type { PluginTask, RestartRequest, TaskRef, TaskResources } from '../lib/task/task.js'

/** What a task runner needs of its host. */
export interface HostPorts {
  /**
   * To be awaited before every start of a task: makes its directories, takes away a dead socket and says what the task has to be
   * given. Idempotent.
   * @throws ERR_OPTION_INVALID, ERR_SOCKET_PATH, ERR_SOCKET (something else, or somebody alive, is where the socket belongs),
   * ERR_PLUGIN_CONFLICT (another task of this alloc claims the same plugin).
   */
  prepare(task: PluginTask): Promise<TaskResources>
  /** Tasks whose plugin did not become healthy in time. */
  readonly restart$: Observable<RestartRequest>
  /** Tasks whose plugin has just ceased to answer: the run may have ended where nobody tells of that. */
  readonly unwell$?: Observable<TaskRef>
  /** What is on record of the tasks that run. Default: nothing is. */
  readonly journal?: TaskJournal
  /** `host.close()` waits for this work: tasks that are being stopped. How long that may take is up to who gives it. */
  waitOnClose?(work: Promise<unknown>): void
  /** Hears of what a runner could not take; comes out on `host.problem$`. */
  problem?(failure: PlugstreamError): void
}
