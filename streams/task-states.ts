import { defer, map, type Observable } from 'rxjs'
import { taskKey, type TaskEvent } from '../lib/task/task.js'
import type { TaskState } from './values.js'

/** The state of one task after an event. */
export interface TaskStateChange {
  allocId: string
  taskName: string
  state: TaskState
}

/**
 * Task events flow in; the state each leaves its task in flows out. A task that has exited stays so until it has started again: what
 * answers in its place meanwhile is not it. A task that has stopped is forgotten with that state.
 */
export function taskStates(taskEvent$: Observable<TaskEvent>): Observable<TaskStateChange> {
  return defer(() => {
    const states = new Map<string, TaskState>()
    let started = 0
    return taskEvent$.pipe(
      map((event) => {
        const { allocId, taskName } = event.task
        const key = taskKey(event.task)
        // counted over all tasks: a task that comes back under a name that was used before must not repeat a number
        const before = states.get(key)
        const run = event.kind === 'started' && !isKnown(event, before) ? ++started : (before?.run ?? 0)
        const state = next(before, event, run)
        if (event.kind === 'stopped') states.delete(key)
        else states.set(key, state)
        return { allocId, taskName, state }
      }),
    )
  })
}

/** A run that this host was not told the start of: what it has learned at the socket, as of a plugin that was restored, it has learned of it. */
function isKnown({ adopted = false }: Extract<TaskEvent, { kind: 'started' }>, before: TaskState | undefined): boolean {
  return adopted && before?.phase !== 'exited'
}

function next(before: TaskState | undefined, event: TaskEvent, run: number): TaskState {
  if (event.kind === 'prestart' && before?.phase === 'exited') return before
  return { phase: phases[event.kind], run, description: describe(event) }
}

const phases = {
  prestart: 'starting',
  started: 'running',
  exited: 'exited',
  stopping: 'stopping',
  stopped: 'stopped',
} as const

function describe(event: TaskEvent): string {
  if (event.kind !== 'exited') return `the task is ${phases[event.kind]}`
  return event.signal === null ? `the task exited with code ${event.code}` : `the task was ended by ${event.signal}`
}
