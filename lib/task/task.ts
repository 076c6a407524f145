import type { HealthReason } from '../plugin/health.js'

/** The `csi_plugin` block of a task. `parseCsiPlugin` reads it from Nomad's words and units too. */
export interface CsiPluginConfig {
  /** Plugin name; global, not namespaced. */
  id: string
  type: 'controller' | 'node' | 'monolith'
  /** Where the task sees the directory of its socket. Default: `/csi`. */
  mountDir?: string | undefined
  /** Where the task sees the volume directory. Default: `/local/csi`. Not inside `mountDir`. */
  stagePublishBaseDir?: string | undefined
  /** How long the plugin may have no socket, no answer, or errors, before a restart is asked for. Default: 30 000. */
  healthTimeoutMs?: number | undefined
  /** How long the plugin may answer that it is not ready yet. Default: 300 000. */
  initTimeoutMs?: number | undefined
}

/** A unit the host runs. With neither `csiPlugin` nor `plugin` it is no plugin and passes through untouched. */
export interface PluginTask {
  /** The run of a unit of the host's that the task belongs to. */
  allocId: string
  /** Its name in that alloc; the two together name the task. */
  taskName: string
  /** Shorthand for `plugin: { kind: 'csi', … }`. */
  csiPlugin?: CsiPluginConfig | undefined
  /** A plugin of any kind; more settings are the kind's. */
  plugin?:
    | { kind: string; id: string; healthTimeoutMs?: number; initTimeoutMs?: number; [setting: string]: unknown }
    | undefined
  /**
   * How this task takes the place of another alloc (`host.replace`). `overlap`: it serves beside the old one for a while. `exclusive`: the
   * old one is stopped first, and calls wait. `elected`: it is started beside the old one, and may be not ready until that has stopped,
   * since the plugins elect a leader. Default: `overlap` where both are controllers only, or gRPC servers, else `exclusive`.
   */
  upgrade?: 'overlap' | 'exclusive' | 'elected' | undefined
  /** `none`: the task sees host paths. `image`: it sees the paths of `TaskResources.mounts`. */
  isolation: 'none' | 'image'
  /** The task's own variables; of those of one name with `TaskResources.env`, these win. */
  env?: Readonly<Record<string, string>> | undefined
}

/**
 * What happened to a task, told by whoever runs it. `at` is in Unix ms.
 *
 * `prestart`: it is about to start; told before every start. `started`: its process is there; `adopted`, it has been there since before
 * this host, which takes it over. `exited`: it ended, or could not begin (`reason`). `stopping`: it is asked to stop, and still runs.
 * `stopped`: it never starts again.
 */
export type TaskEvent = { task: PluginTask; at: number } & (
  | { kind: 'prestart' }
  | { kind: 'started'; pid?: number; adopted?: boolean }
  | { kind: 'exited'; code: number | null; signal: string | null; willRestart: boolean; reason?: string }
  | { kind: 'stopping' }
  | { kind: 'stopped' }
)

/** A line for the task's own event list: written on an edge only, with its reason. */
export interface TaskNote {
  task: PluginTask
  kind: 'plugin-healthy' | 'plugin-unhealthy' | 'restarting'
  reason: HealthReason
  message: string
  at: number
}

/** What supervision asks of whoever runs the task. Counts against the task's restart policy. */
export interface RestartRequest {
  task: PluginTask
  reason: HealthReason
  message: string
}

/** One directory of the host that a task has to see. `bidirectional`: mounts made on either side are seen on the other. */
export interface TaskMount {
  hostPath: string
  taskPath: string
  readonly: boolean
  propagation: 'private' | 'bidirectional'
}

/** What a task needs to be a plugin; a task that is none gets an empty socket path, no variables and no mounts. */
export interface TaskResources {
  /** Where the host expects the plugin's socket (host side). */
  socketPath: string
  /** `CSI_ENDPOINT`, unless the task sets it itself. */
  env: Readonly<Record<string, string>>
  mounts: readonly TaskMount[]
}

/** The key of a task: one supervision flow and one socket directory each. */
export interface TaskRef {
  allocId: string
  taskName: string
}

/** A text that names a task, and no other; for maps. */
export function taskKey(task: TaskRef): string {
  return JSON.stringify([task.allocId, task.taskName])
}
