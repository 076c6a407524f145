import { defer, map, type Observable } from 'rxjs'
import { taskKey, type TaskEvent } from '../lib/task/task.js'
import type { TaskState } from './values.js'

/** The state of one task after an event. */
export interface TaskStateChange {
  allocId: string
  taskName: string
  state: TaskState
}

/** Task events flow in; the state each leaves its task in flows out. A task that has stopped is forgotten with that state. */
export function taskStates(taskEvent$: Observable<TaskEvent>): Observable<TaskStateChange> {
  return defer(() => {
    const runs = new Map<string, number>()
    let started = 0
    return taskEvent$.pipe(
      map((event) => {
        const { allocId, taskName } = event.task
        const key = taskKey(event.task)
        // counted over all tasks: a task that comes back under a name that was used before must not repeat a number
        if (event.kind === 'started') runs.set(key, ++started)
        const run = runs.get(key) ?? 0
        if (event.kind === 'stopped') runs.delete(key)
        return { allocId, taskName, state: { phase: phases[event.kind], run, description: describe(event) } }
      }),
    )
  })
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
