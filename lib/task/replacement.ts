import type { PlugstreamError } from '../errors.js'
import type { TaskRef } from './task.js'

/** How far the replacement of a plugin's task by another one is. Told at every change; `replaced` and `failed` are the last of one. */
export interface Replacement {
  /** The name of the plugin. */
  plugin: string
  /** The task that has served it, and the one that is to. */
  from: TaskRef
  to: TaskRef
  /**
   * `starting`: the new task is started, and waited for. `handing-over`: the old one is stopped before the new one can serve; calls are held
   * back. `baking`: the new one serves, and has to stay well. `stopping`: the old one finishes the calls it has, and is stopped.
   * `replaced`. `rolling-back`: the new one is stopped, and the old one started where it was stopped. `failed`: the old one serves.
   */
  phase: 'starting' | 'handing-over' | 'baking' | 'stopping' | 'replaced' | 'rolling-back' | 'failed'
  /** Why it is rolled back, or has failed. */
  failure?: PlugstreamError
  /** Unix ms. */
  at: number
}
