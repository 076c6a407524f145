import type { TaskExit, TaskSpec } from './driver.js'
import { freshHistory, type RestartHistory } from './restart-policy.js'
import type { TaskEvent, TaskResources } from './task.js'
import type { TaskOrder } from './task-spec.js'

/** What befalls a task that is run. */
export type RunInput<Handle> =
  | { kind: 'spec'; spec: TaskSpec }
  | { kind: 'order'; order: TaskOrder['order'] }
  | { kind: 'request'; message: string } // supervision asks for a restart
  | { kind: 'prepared'; resources: TaskResources }
  | { kind: 'began'; handle: Handle; pid: number | undefined; adopted: boolean }
  | { kind: 'failed'; message: string } // it could not be prepared, or not begin
  | { kind: 'exited'; exit: TaskExit }
  | { kind: 'cleared'; exit: TaskExit } // nothing of the run is left
  | { kind: 'due' } // the pause before the next try is over

/** What the runner is busy with for a task. `hold` waits for somebody's word; each of the others ends with one of the inputs. */
export type Doing<Handle> =
  | { kind: 'nothing' }
  | { kind: 'prepare'; spec: TaskSpec }
  | { kind: 'start'; spec: TaskSpec; resources: TaskResources }
  | { kind: 'run'; handle: Handle }
  | { kind: 'stop'; handle: Handle; graceMs: number }
  | { kind: 'wait'; dueAt: number }
  | { kind: 'hold' }
  | { kind: 'end' }

/** What comes when nothing is left of the present run. */
export type After =
  | { kind: 'end' }
  | { kind: 'start'; spec: TaskSpec } // by hand
  | { kind: 'ask'; message: string } // by supervision: the policy decides once the run has ended
  | { kind: 'wait'; dueAt: number }
  | { kind: 'hold' }

/** A task that is run, as its last input left it. Values of this type are never changed. */
export interface TaskRun<Handle> {
  /** What the present run was started with. */
  spec: TaskSpec | undefined
  doing: Doing<Handle>
  after: After | undefined
  history: RestartHistory
  /** When the present run began, Unix ms. */
  startedAt: number | undefined
  pid: number | undefined
  /** Which events the present run has had: each is told once. */
  told: { stopping: boolean; exited: boolean }
  /** For people: why it is being ended, waits, is held, or has ended. */
  reason: string | undefined
  /** What the last step told. */
  events: readonly TaskEvent[]
}

/** What no run has had yet. */
export const newRun = {
  after: undefined,
  startedAt: undefined,
  pid: undefined,
  told: { stopping: false, exited: false },
  reason: undefined,
}

/** A task nobody has spoken of yet. */
export const absentTask: TaskRun<never> = {
  ...newRun,
  spec: undefined,
  doing: { kind: 'nothing' },
  history: freshHistory,
  events: [],
}

/** The time of a step in Unix ms, and its share of chance in [0, 1). */
export interface Moment {
  at: number
  random: number
}

/** The same, with nothing told. */
export function quiet<Handle>(run: TaskRun<Handle>): TaskRun<Handle> {
  return { ...run, events: [] }
}
