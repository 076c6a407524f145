import { invalidOption } from '../errors.js'
import type { PluginKind, PluginTaskConfig } from '../plugin/kind.js'
import type { PluginRef } from '../plugin/plugin.js'
import type { PluginTask, TaskEvent } from './task.js'
import { taskOptions, taskPaths } from './task-paths.js'

/** What a task's configuration makes of it as a plugin. */
export interface TaskPlugin {
  kind: PluginKind
  config: PluginTaskConfig
  /** What it registers, in order. */
  refs: readonly PluginRef[]
  socketPath: string
  /** The options it is registered with. */
  options: Readonly<Record<string, string>>
}

/**
 * Reads the plugin of a task; `undefined` where the task is none. Touches no disk.
 *
 * @throws ERR_OPTION_INVALID naming the field; ERR_SOCKET_PATH where no short enough path can be had.
 */
export function taskPlugin(kinds: readonly PluginKind[], stateDir: string, task: PluginTask): TaskPlugin | undefined {
  checkTask(task)
  if (task.csiPlugin === undefined && task.plugin === undefined) return undefined
  const name = task.csiPlugin === undefined ? task.plugin?.kind : 'csi'
  const kind = kinds.find((one) => one.kind === name)
  if (!kind) throw invalidOption('task.plugin.kind', name, `one of ${kinds.map((one) => one.kind).join(', ')}`)
  const config = kind.configure(task)
  return {
    kind,
    config,
    refs: config.types.map((type) => ({ type, name: config.id, allocId: task.allocId })),
    socketPath: taskPaths(stateDir, kind.kind, config, task).socketPath,
    options: taskOptions(stateDir, kind.kind, config, task),
  }
}

/** @throws ERR_OPTION_INVALID where a task cannot be told from others, or says of itself what cannot be. */
export function checkTask(task: PluginTask): void {
  for (const field of ['allocId', 'taskName'] as const) {
    const value: unknown = task[field]
    if (typeof value !== 'string' || value === '' || value.includes('\0')) {
      throw invalidOption(`task.${field}`, value, 'a text that is not empty and has no NUL')
    }
  }
  const isolation: unknown = task.isolation
  if (isolation !== 'none' && isolation !== 'image') {
    throw invalidOption('task.isolation', isolation, "'none' or 'image'")
  }
  if (task.csiPlugin !== undefined && task.plugin !== undefined) {
    throw invalidOption('task.plugin', task.plugin, 'left out where csiPlugin is given')
  }
}

const eventKinds = ['prestart', 'started', 'exited', 'stopping', 'stopped'] as const

/** @throws ERR_OPTION_INVALID naming the field of an event that says nothing of any task. */
export function checkTaskEvent(event: TaskEvent): void {
  const { kind, task }: { kind?: unknown; task?: unknown } = Object(event)
  if (!eventKinds.some((one) => one === kind))
    throw invalidOption('event.kind', kind, `one of ${eventKinds.join(', ')}`)
  if (typeof task !== 'object' || task === null) throw invalidOption('event.task', task, 'the task it is about')
  checkTask(event.task)
}
