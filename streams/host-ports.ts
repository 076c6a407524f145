import type { Observable } from 'rxjs'
import type { PlugstreamError } from '../lib/errors.js'
import type { TaskJournal } from '../lib/task/task-record.js'
import type { TaskOrder } from '../lib/task/task-spec.js'
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
  /**
   * What the host itself wants of its tasks, when one is replaced: a task that is to be started, as `host.replace` or an earlier event has
   * told of it, or an order to `stop` one. To be followed like what comes from elsewhere; completes when the host closes.
   */
  readonly order$?: Observable<PluginTask | TaskOrder>
  /** `host.close()` waits for this work: tasks that are being stopped. How long that may take is up to who gives it. */
  waitOnClose?(work: Promise<unknown>): void
  /** Hears of what a runner could not take, and which task that is about; comes out on `host.problem$`. */
  problem?(failure: PlugstreamError, task?: TaskRef): void
}
