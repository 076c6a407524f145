import { invalidOption } from '../errors.js'
import { picked } from '../options.js'
import type { ChannelOptions, PluginKind, PluginTaskConfig } from '../plugin/kind.js'
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
  /** Those of them that its channel has to be told. */
  channelOptions: ChannelOptions
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
  const options = taskOptions(stateDir, kind.kind, config, task)
  return {
    kind,
    config,
    refs: config.types.map((type) => ({ type, name: config.id, allocId: task.allocId })),
    socketPath: taskPaths(stateDir, kind.kind, config, task).socketPath,
    options,
    channelOptions: picked(options, kind.channelOptions),
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
  const upgrade: unknown = task.upgrade
  if (upgrade !== undefined && upgrade !== 'overlap' && upgrade !== 'exclusive' && upgrade !== 'elected') {
    throw invalidOption('task.upgrade', upgrade, "'overlap', 'exclusive' or 'elected', or left out")
  }
  if (task.csiPlugin !== undefined && task.plugin !== undefined) {
    throw invalidOption('task.plugin', task.plugin, 'left out where csiPlugin is given')
  }
}

const eventKinds = ['prestart', 'started', 'exited', 'stopping', 'stopped'] as const

/**
 * An event as it is now, in memory of its own: what its giver changes in it later, or throws when it is read again, reaches nobody.
 *
 * @throws ERR_OPTION_INVALID naming the field of an event that says nothing of any task.
 */
export function takeTaskEvent(given: TaskEvent): TaskEvent {
  if (!isObject(given)) throw invalidOption('event', given, 'an object')
  const { kind, task } = given
  if (!eventKinds.includes(kind)) throw invalidOption('event.kind', kind, `one of ${eventKinds.join(', ')}`)
  return { ...given, kind, task: takeTask(task) } as TaskEvent
}

/** The same for a task. */
export function takeTask(given: PluginTask): PluginTask {
  if (!isObject(given)) throw invalidOption('task', given, 'an object')
  const { allocId, taskName, isolation, csiPlugin, plugin, env } = given
  const task: PluginTask = {
    ...given,
    ...{ allocId, taskName, isolation },
    ...(csiPlugin !== undefined && { csiPlugin: isObject(csiPlugin) ? { ...csiPlugin } : csiPlugin }),
    ...(plugin !== undefined && { plugin: isObject(plugin) ? { ...plugin } : plugin }),
    ...(env !== undefined && { env: { ...env } }),
  }
  checkTask(task)
  return task
}

function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}
