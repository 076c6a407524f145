/**
 * plugstream/docker: tasks in containers, by the API of the Docker engine, which Podman speaks too. Needs `dockerode`.
 *
 * @packageDocumentation
 */

import type { Observable } from 'rxjs'
import {
  containerDriver,
  localEngine,
  type DockerDriver,
  type DockerDriverInit,
  type DockerEngine,
} from '../lib/docker/container-driver.js'
import { ContainerLooks } from '../lib/docker/container-looks.js'
import { invalidOption } from '../lib/errors.js'
import { takeOptions } from '../lib/options.js'
import { openTaskLogs } from '../lib/task/log-file.js'
import { readTaskInput } from '../lib/task/task-spec.js'
import type { TaskEvent } from '../lib/task/task.js'
import { eachOf } from './operators/each-of.js'
import { taskEvents } from './task-events.js'

export type { ContainerTask, DockerDriver, DockerDriverInit, DockerEngine } from '../lib/docker/container-driver.js'
export type { ContainerSettings } from '../lib/docker/container-task.js'
export { containerLabels } from '../lib/docker/labels.js'

/**
 * Runs tasks as containers of an engine on this machine. Each has a block `container` with at least its image, which is pulled where the
 * engine does not have it; `command` takes the place of the image's entry point. An init of the engine's runs before it.
 *
 * A task that sees the paths of its image (`isolation: 'image'`) gets the mounts of `prepare` where the plugin expects them; those that
 * go both ways need the state directory on a shared mount. Its output goes through the engine to the same files as that of a process.
 *
 * A container outlives its host: the next host of that `hostId` takes it over (`runTasks` asks for that), and removes with `collect` those
 * whose tasks nobody wants any more. A code of 137 (or of another signal nobody exits with) is told as that signal: the engine has one
 * number for both.
 *
 * @throws `start` rejects with ERR_TASK_SPAWN where the program is not there or cannot begin; with ERR_CONTAINER where the engine does not
 * answer or refuses, the image cannot be had, or a mount cannot go both ways; with ERR_OPTION_INVALID where the task is none.
 * @example
 * const driver = dockerDriver({ hostId: '/var/lib/agent', logDir: '/var/log/agent' })
 * const task = { allocId: 'ebs-1', taskName: 'driver', isolation: 'image', command: ['/bin/aws-ebs-csi-driver', 'node'],
 *   container: { image: 'public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.40.0', privileged: true }, csiPlugin: { id: 'ebs', type: 'node' } }
 * openHost({ stateDir: '/var/lib/agent', task$: (ports) => runTasks(of(task), driver, ports) })
 */
export function dockerDriver(init: DockerDriverInit): DockerDriver {
  return containerDriver(init, { readTask: readTaskInput, openLogs: openTaskLogs })
}

/**
 * What happens to containers that somebody else runs, and that carry the labels of a task (`containerLabels`), as task events: for
 * `openHost({ task$ })`. Those that run already are told as started (`adopted`). An engine that goes away is listened to again, and what was missed
 * is made up for; that a container is asked to stop is not told, since engines do not say so. Never ends, never fails.
 *
 * @param docker The engine. Default: the one of `DOCKER_HOST`, else of `/var/run/docker.sock`.
 * @param init.hostId Only the containers with this `plugstream.host`. Default: all.
 * @throws ERR_OPTION_INVALID naming the field.
 * @example openHost({ stateDir, task$: dockerTaskEvents(docker, { hostId: 'node-1' }) })
 */
export function dockerTaskEvents(
  docker: DockerEngine = localEngine(),
  init: { hostId?: string | undefined } = {},
): Observable<TaskEvent> {
  const { hostId } = takeOptions('init', init, ['hostId'])
  if (hostId !== undefined && (typeof hostId !== 'string' || hostId === ''))
    throw invalidOption('hostId', hostId, 'a text that is not empty')
  const containers = new ContainerLooks(docker, hostId)
  return taskEvents(eachOf((signal) => containers.looks(signal)))
}
