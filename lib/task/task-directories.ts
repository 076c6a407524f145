import { prepareTask, releaseTask, type TaskPreparation } from './prepare.js'
import type { PluginTask, TaskResources } from './task.js'

/**
 * The directories of a host's tasks. What concerns one alloc is done in the order it was asked for, so that the end of one task takes
 * nothing away under the beginning of the next of its name.
 *
 * @example
 * const directories = new TaskDirectories({ stateDir, dial })
 * const { env, mounts } = await directories.prepare(task, { kind: 'csi', config })
 */
export class TaskDirectories {
  readonly #waiting = new Map<string, Promise<unknown>>()

  constructor(private readonly init: Pick<TaskPreparation, 'stateDir' | 'dial'>) {}

  /** See `prepareTask`. */
  prepare(task: PluginTask, plugin: TaskPreparation['plugin']): Promise<TaskResources> {
    return this.#inTurn(task, () => prepareTask({ ...this.init, task, plugin }))
  }

  /** See `releaseTask`. */
  release(task: PluginTask, plugin: TaskPreparation['plugin']): Promise<void> {
    return this.#inTurn(task, () => releaseTask({ ...this.init, task, plugin }))
  }

  /** Resolves when everything asked for so far is done. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#waiting.values())
  }

  #inTurn<T>({ allocId }: PluginTask, work: () => Promise<T>): Promise<T> {
    const result = (this.#waiting.get(allocId) ?? Promise.resolve()).then(work, work)
    this.#waiting.set(allocId, result)
    const forget = (): void => {
      if (this.#waiting.get(allocId) === result) this.#waiting.delete(allocId)
    }
    result.then(forget, forget)
    return result
  }
}
