import { PlugstreamError } from '../errors.js'
import type { PluginRef } from '../plugin/plugin.js'
import { taskKey, type TaskRef } from './task.js'

/**
 * Which task of an alloc serves which instance. Two tasks of one alloc that claimed the same type and name would take the one
 * instance from each other for ever; the second is refused instead.
 */
export class TaskClaims {
  readonly #holders = new Map<string, TaskRef>()
  readonly #refs = new Map<string, readonly PluginRef[]>()

  /**
   * Claims all of `refs` for a task, in place of what it had claimed before, or none of them.
   * @throws ERR_PLUGIN_CONFLICT where another task holds one.
   */
  claim(task: TaskRef, refs: readonly PluginRef[]): void {
    for (const ref of refs) {
      const holder = this.#holders.get(keyOf(ref))
      if (holder && taskKey(holder) !== taskKey(task)) throw conflict(ref, holder, task)
    }
    this.release(task)
    const holder = { allocId: task.allocId, taskName: task.taskName }
    for (const ref of refs) this.#holders.set(keyOf(ref), holder)
    if (refs.length > 0) this.#refs.set(taskKey(task), refs)
  }

  /** Gives back whatever a task holds. */
  release(task: TaskRef): void {
    for (const ref of this.#refs.get(taskKey(task)) ?? []) this.#holders.delete(keyOf(ref))
    this.#refs.delete(taskKey(task))
  }

  /** The task that claims an instance. */
  holder(ref: PluginRef): TaskRef | undefined {
    return this.#holders.get(keyOf(ref))
  }
}

function keyOf(ref: PluginRef): string {
  return JSON.stringify([ref.allocId, ref.type, ref.name])
}

function conflict(ref: PluginRef, holder: TaskRef, task: TaskRef): PlugstreamError {
  return new PlugstreamError(
    'ERR_PLUGIN_CONFLICT',
    `task ${task.taskName} of alloc ${task.allocId} claims ${ref.type} ${ref.name}, which task ${holder.taskName} of the same alloc serves`,
    {
      details: {
        type: ref.type,
        name: ref.name,
        allocId: ref.allocId,
        holder: holder.taskName,
        taskName: task.taskName,
      },
    },
  )
}
