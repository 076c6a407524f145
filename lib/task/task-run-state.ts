import type { TaskSpec } from './driver.js'
import type { TaskRun } from './task-run.js'

/** What the task runner does with a task, told at every change. Beyond the task events it tells why, and what is waited for. */
export interface TaskRunState {
  /** As it was given. */
  task: TaskSpec
  /**
   * `starting`: its resources are prepared, or it is being begun. `stopping`: it is being ended, or what it left behind is. `waiting`:
   * for its next try. `held`: out of attempts, until it is resumed by hand. `stopped`: it ended for good, and is forgotten. `refused`:
   * it is no task that could be run; what ran under its name goes on.
   */
  phase: 'starting' | 'running' | 'stopping' | 'waiting' | 'held' | 'stopped' | 'refused'
  /** For people: why it is being ended, waits, is held, has ended, or was refused. */
  reason?: string
  /** How many restarts count against its policy. */
  restarts: number
  pid?: number
  /** When it is tried next, Unix ms. */
  dueAt?: number
  /** Unix ms. */
  at: number
}

const phases = {
  prepare: 'starting',
  start: 'starting',
  run: 'running',
  stop: 'stopping',
  wait: 'waiting',
  hold: 'held',
  end: 'stopped',
} as const

/** The state of a task as others see it; nothing of one that never was. */
export function stateOf(run: TaskRun<unknown>): Omit<TaskRunState, 'at'> | undefined {
  const { spec, doing, reason, pid, history } = run
  if (spec === undefined || doing.kind === 'nothing') return undefined
  return {
    task: spec,
    phase: phases[doing.kind],
    restarts: history.restartedAt.length,
    ...(reason === undefined ? {} : { reason }),
    ...(pid === undefined ? {} : { pid }),
    ...(doing.kind === 'wait' ? { dueAt: doing.dueAt } : {}),
  }
}
