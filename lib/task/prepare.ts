import { readdir, rmdir, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { socketPathLimitBytes } from '../defaults.js'
import { PlugstreamError } from '../errors.js'
import type { PluginTaskConfig } from '../plugin/kind.js'
import type { DialAnswer } from '../plugin/socket.js'
import { isOwnDirectory, makePrivateDirectory, statOf, unless, whatIs } from './private-directory.js'
import type { PluginTask, TaskMount, TaskResources } from './task.js'
import { socketPathTooLong, taskPaths } from './task-paths.js'

/** A task, and what its configuration came to. */
export interface TaskPreparation {
  stateDir: string
  task: PluginTask
  /** The name of its plugin kind and what the kind made of its configuration; absent: the task is no plugin. */
  plugin: { kind: string; config: PluginTaskConfig } | undefined
  /** Asks whether anybody listens on a socket. */
  dial: (socketPath: string) => Promise<DialAnswer>
}

/**
 * Makes a task's directories, takes away the socket a dead process left behind, and says what the task has to be given. To be
 * awaited before every start; the same call again changes nothing.
 *
 * Only a socket that refuses a connection is removed. One that answers, and a file that is no socket, is somebody's.
 *
 * @throws ERR_SOCKET_PATH where no short enough path can be had, ERR_SOCKET where the place of the socket is taken (`retryable` where
 * somebody answers there: a previous run may be about to end) or a directory cannot be made.
 */
export async function prepareTask({ stateDir, task, plugin, dial }: TaskPreparation): Promise<TaskResources> {
  if (!plugin) return { socketPath: '', env: {}, mounts: [] }
  const { config } = plugin
  const { volumeRoot, socketDirectory, socketPath } = taskPaths(stateDir, plugin.kind, config, task)
  const { volumeDir } = config
  const seenSocketPath = task.isolation === 'none' ? socketPath : `${config.mountDir}/${config.socketName}`
  if (Buffer.byteLength(seenSocketPath) > socketPathLimitBytes) {
    throw socketPathTooLong(seenSocketPath, 'use a shorter mountDir')
  }
  if (volumeDir !== undefined) await makePrivateDirectory(stateDir, volumeRoot)
  await makePrivateDirectory(stateDir, socketDirectory)
  await removeStaleSocket(socketPath, dial)
  const variable = config.endpointVariable
  const setByTask = variable === undefined || task.env?.[variable] !== undefined
  return {
    socketPath,
    env: setByTask ? {} : { [variable]: `unix://${seenSocketPath}` },
    mounts:
      volumeDir === undefined
        ? [own(socketDirectory, config.mountDir)]
        : [shared(socketDirectory, config.mountDir), shared(volumeRoot, volumeDir), own('/dev', '/dev')],
  }
}

/**
 * Removes the socket directory of a task that never starts again, and keeps the volume root. Where somebody may still be on the
 * socket, where there are directories in it (a mount may hide behind one), or where a link leads out of `stateDir`, it stays.
 *
 * @throws ERR_SOCKET where the system refuses.
 */
export async function releaseTask({ stateDir, task, plugin, dial }: TaskPreparation): Promise<void> {
  if (!plugin) return
  const { socketDirectory, socketPath } = taskPaths(stateDir, plugin.kind, plugin.config, task)
  try {
    if (!(await isOwnDirectory(stateDir, socketDirectory))) return
    const answer = await dial(socketPath)
    if (answer.kind !== 'missing' && answer.kind !== 'refused' && answer.kind !== 'not-a-socket') return
    for (const entry of await readdir(socketDirectory, { withFileTypes: true })) {
      if (!entry.isDirectory()) await unlink(join(socketDirectory, entry.name)).catch(unless('ENOENT', 'EBUSY'))
    }
    await removeIfEmpty(socketDirectory)
    // The directory of the alloc goes with its last task. The one of all short paths stays.
    if (dirname(dirname(socketDirectory)) !== resolve(stateDir)) await removeIfEmpty(dirname(socketDirectory))
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_SOCKET', `removing ${socketDirectory}`)
  }
}

async function removeStaleSocket(socketPath: string, dial: TaskPreparation['dial']): Promise<void> {
  const found = await statOf(socketPath)
  if (!found) return
  if (!found.isSocket()) throw taken(socketPath, `${whatIs(found)} is in its place, which is left alone`)
  const answer = await dial(socketPath)
  if (answer.kind === 'missing') return
  if (answer.kind === 'connected') {
    throw taken(socketPath, 'somebody answers there; a previous run of the task may still be alive', true)
  }
  if (answer.kind !== 'refused') throw taken(socketPath, answer.description)
  const now = await statOf(socketPath)
  // Inodes are used again; the birth time tells another socket that came meanwhile.
  const isSame = now?.ino === found.ino && now.dev === found.dev && now.birthtimeNs === found.birthtimeNs
  if (!isSame) return removeStaleSocket(socketPath, dial)
  await unlink(socketPath).catch((failure: unknown) => {
    throw PlugstreamError.from(failure, 'ERR_SOCKET', `removing the dead socket ${socketPath}`)
  })
}

function taken(socketPath: string, why: string, retryable = false): PlugstreamError {
  return new PlugstreamError('ERR_SOCKET', `the socket ${socketPath} cannot be used: ${why}`, {
    retryable,
    details: { socketPath },
  })
}

async function removeIfEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch(unless('ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'))
}

function own(hostPath: string, taskPath: string): TaskMount {
  return { hostPath, taskPath, readonly: false, propagation: 'private' }
}

function shared(hostPath: string, taskPath: string): TaskMount {
  return { hostPath, taskPath, readonly: false, propagation: 'bidirectional' }
}
