import { dirname, join, resolve } from 'node:path'
import { socketPathLimitBytes } from '../defaults.js'
import { PlugstreamError } from '../errors.js'
import { escapePathPart, hashText } from '../path-escape.js'
import type { PluginTaskConfig } from '../plugin/kind.js'
import type { PluginTask, TaskRef } from './task.js'

/** Where a plugin task has its directories, on the host's side. */
export interface TaskPaths {
  /** Of the plugin, whichever task serves it; outlives every task. */
  volumeRoot: string
  /** Of this task alone. */
  socketDirectory: string
  socketPath: string
}

/**
 * The paths of a task, by its names alone and without a look at the disk.
 *
 * ```
 * <stateDir>/<kind>/volumes/<plugin id>/
 * <stateDir>/<kind>/plugins/<allocId>/<taskName>/csi.sock
 * <stateDir>/s/<hash>/csi.sock                             where that is too long for a socket
 * ```
 *
 * @throws ERR_SOCKET_PATH where the short path is too long as well: `stateDir` itself is.
 */
export function taskPaths(
  stateDir: string,
  kind: string,
  config: Pick<PluginTaskConfig, 'id' | 'socketName'>,
  task: TaskRef,
): TaskPaths {
  const root = resolve(stateDir)
  const volumeRoot = volumeRootOf(stateDir, kind, config.id)
  const natural = join(
    root,
    escapePathPart(kind),
    'plugins',
    escapePathPart(task.allocId),
    escapePathPart(task.taskName),
  )
  // 80 bits of the hash: no two tasks of a host meet by chance.
  const short = join(root, 's', hashText(JSON.stringify([kind, task.allocId, task.taskName])).slice(0, 20))
  for (const directory of [natural, short]) {
    const socketPath = join(directory, config.socketName)
    if (Buffer.byteLength(socketPath) <= socketPathLimitBytes)
      return { volumeRoot, socketDirectory: directory, socketPath }
  }
  throw socketPathTooLong(join(short, config.socketName), 'use a shorter stateDir')
}

/** Where a plugin has its volumes, on the host's side. */
export function volumeRootOf(stateDir: string, kind: string, id: string): string {
  return join(resolve(stateDir), escapePathPart(kind), 'volumes', escapePathPart(id))
}

/** Where the host expects the socket of a task. */
export function socketPathFor(
  stateDir: string,
  kind: string,
  config: Pick<PluginTaskConfig, 'id' | 'socketName'>,
  task: TaskRef,
): string {
  return taskPaths(stateDir, kind, config, task).socketPath
}

/**
 * The options a task's plugin is registered with: its own, the task's name, and where it has volumes, their root as the host and as the
 * task sees it. A task without isolation sees the host's path.
 *
 * @throws ERR_SOCKET_PATH as `taskPaths` does.
 */
export function taskOptions(
  stateDir: string,
  kind: string,
  config: PluginTaskConfig,
  task: PluginTask,
): Readonly<Record<string, string>> {
  const { volumeRoot } = taskPaths(stateDir, kind, config, task)
  const { options, volumeDir } = config
  const named = { ...options, taskName: task.taskName }
  if (volumeDir === undefined) return named
  return { ...named, mountPoint: volumeRoot, containerMountPoint: task.isolation === 'none' ? volumeRoot : volumeDir }
}

/** What can be done about it goes last in the message. */
export function socketPathTooLong(socketPath: string, advice: string): PlugstreamError {
  const lengthBytes = Buffer.byteLength(socketPath)
  return new PlugstreamError(
    'ERR_SOCKET_PATH',
    `the socket path ${socketPath} has ${lengthBytes} bytes; the limit is ${socketPathLimitBytes}: ${advice}`,
    { details: { socketPath, lengthBytes, limitBytes: socketPathLimitBytes } },
  )
}

/** Every directory from the first below `stateDir` down to `directory`, which lies in it. */
export function directoriesBelow(stateDir: string, directory: string): string[] {
  const root = resolve(stateDir)
  const chain: string[] = []
  for (let at = directory; at !== root && at !== dirname(at); at = dirname(at)) chain.unshift(at)
  return chain
}
