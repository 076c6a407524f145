import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { filter, firstValueFrom, Subject } from 'rxjs'
import type { TaskOrder } from '../../../lib/task/task-spec.js'
import type { TaskSpec } from '../../../lib/task/driver.js'
import { dockerDriver, type ContainerTask } from '../../../streams/docker.js'
import { openHost } from '../../../streams/host.js'
import { runTasks } from '../../../streams/run-tasks.js'
import { makeShared, unmountBelow } from '../../interop/mounts.js'
import { image, noContainers, Podman } from '../../interop/podman.js'
import { scriptedPluginCommand } from '../../testing/spawn-scripted-plugin.js'
import type { Bench, Rounds } from '../bench.js'
import { instant, scratch } from '../scratch.js'

const sources = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** Most of it is the plugin's own start: a Node that loads TypeScript. */
export const containing: Bench = {
  name: 'h-container-to-registered',
  ours: 'a container is asked for until its plugin is registered',
  limit: 'the start event of the engine for it',
  unit: 'ms',
  rounds: 10,
  lacks: noContainers,
  open: async (): Promise<Rounds> => {
    const { directory, scope } = scratch()
    const podman = await Podman.start()
    scope.add(() => podman[Symbol.asyncDispose]())
    const stateDir = `${directory}/state`
    mkdirSync(stateDir)
    makeShared(stateDir)
    scope.add(() => unmountBelow(directory))
    const driver = dockerDriver({ hostId: directory, docker: podman.docker })
    const input$ = new Subject<TaskSpec | TaskOrder>()
    const host = await openHost({ stateDir, task$: (ports) => runTasks(input$, driver, ports) })
    scope.add(() => host.close())
    let count = 0

    const happens = (kind: string): Promise<unknown> =>
      firstValueFrom(host.registry.event$.pipe(filter((event) => event.kind === kind)))
    const round = async (): Promise<{ ours: number; limit: number }> => {
      const task: ContainerTask = {
        allocId: `alloc-${++count}`,
        taskName: 'plugin',
        isolation: 'image',
        cwd: sources,
        csiPlugin: { id: 'bench', type: 'node' },
        container: {
          image,
          network: 'none',
          mounts: [{ hostPath: sources, taskPath: sources, readonly: true, propagation: 'private' }],
        },
        ...scriptedPluginCommand(),
      }
      const engine = await startEvent(podman, task.allocId)
      const registered = happens('registered').then(instant)
      const began = instant()
      input$.next(task)
      const sample = { ours: (await registered) - began, limit: (await engine.at) - began }
      const gone = happens('deregistered')
      input$.next({ order: 'stop', allocId: task.allocId, taskName: task.taskName })
      await gone
      return sample
    }
    return { round, close: () => scope.close() }
  },
}

/** When the engine says that the container of an alloc has started; it is listened to by the time this resolves. */
async function startEvent(podman: Podman, allocId: string): Promise<{ at: Promise<number> }> {
  const over = new AbortController()
  const filters = { event: ['start'], label: [`plugstream.alloc=${allocId}`] }
  const stream = await podman.docker.getEvents({ filters, abortSignal: over.signal })
  const at = once(stream, 'data').then(instant)
  stream.on('error', () => undefined) // that it was left
  return { at: at.finally(() => over.abort()) }
}
