import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { filter, firstValueFrom, NEVER, Subject, type Observable } from 'rxjs'
import { snapshotIntervalMs } from '../../../lib/defaults.js'
import type { PluginTask, TaskEvent } from '../../../lib/task/task.js'
import { openHost } from '../../../streams/host.js'
import type { PluginHost } from '../../../streams/plugin-host.js'
import { bareKeyv } from '../bare-keyv.js'
import { timed, type Bench, type Rounds } from '../bench.js'
import { PluginProcess } from '../plugin-process.js'
import { instant, scratch } from '../scratch.js'

const killed: Bench = {
  name: 'b-killed-to-health',
  ours: 'SIGKILL until the health event',
  limit: "the 'close' event of a plain socket to the same process",
  unit: 'ms',
  rounds: 50,
  aim: { medianAtMost: 20 },
  open: async (): Promise<Rounds> => {
    const { directory, scope } = scratch()
    const host = await openHost({ stateDir: `${directory}/state`, task$: NEVER })
    scope.add(() => host.close())
    let count = 0
    return {
      round: async () => {
        const plugin = new PluginProcess()
        const allocId = `alloc-${++count}`
        const socketPath = `${directory}/${count}.sock`
        await plugin.listen(socketPath)
        const ref = { type: 'csi-node', name: 'bench', allocId }
        await host.registry.register({ ...ref, connection: { socketPath } })
        await host.waitFor('csi-node', 'bench', { healthy: true })
        const socket = connect(socketPath).resume()
        socket.on('error', () => undefined)
        await once(socket, 'connect')

        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).then(instant)
        const unhealthy = firstValueFrom(
          host.health$.pipe(filter(({ plugin: { allocId: of }, healthy }) => of === allocId && !healthy)),
        ).then(instant)
        const at = plugin.kill()
        const sample = { ours: (await unhealthy) - at, limit: (await closed) - at }
        await host.registry.deregister(ref)
        await plugin.end()
        return sample
      },
      close: () => scope.close(),
    }
  },
}

/** The last word on an instance, after its task was told to be stopping. */
function stopping(what: string, last: (host: PluginHost) => Observable<unknown>): Bench {
  return {
    name: `b-stopping-to-${what}`,
    ours: `a task is stopping until the last ${what} of its plugin`,
    limit: 'deleting one record with a bare Keyv, which has to come first',
    unit: 'ms',
    rounds: 50,
    open: async () => {
      const { directory, scope } = scratch()
      const task$ = new Subject<TaskEvent>()
      const host = await openHost({ stateDir: `${directory}/state`, task$ })
      scope.add(() => host.close())
      const plugin = new PluginProcess()
      scope.add(() => plugin.end())
      const keyv = await bareKeyv(`${directory}/bare.sqlite`)
      scope.add(() => keyv.disconnect())
      let count = 0
      return {
        round: async () => {
          const task: PluginTask = {
            allocId: `alloc-${++count}`,
            taskName: 'plugin',
            isolation: 'none',
            csiPlugin: { id: 'bench', type: 'node' },
          }
          const { socketPath } = await host.prepare(task)
          const read = firstValueFrom(
            host.node$.pipe(filter(({ instances }) => instances.some((one) => one.fingerprint?.healthy))),
          )
          task$.next({ kind: 'started', task, at: instant() })
          await plugin.listen(socketPath)
          await read
          await pause(2 * snapshotIntervalMs) // so that the next snapshot is a first one again
          const told = firstValueFrom(last(host))
          const ours = await timed(() => {
            task$.next({ kind: 'stopping', task, at: instant() })
            return told
          })
          await plugin.stopListening(socketPath)
          task$.next({ kind: 'stopped', task, at: instant() })

          await keyv.set('record', task)
          return { ours, limit: await timed(() => keyv.delete('record')) }
        },
        close: () => scope.close(),
      }
    },
  }
}

export const losing: readonly Bench[] = [
  killed,
  stopping('health', (host) => host.health$.pipe(filter(({ final }) => final))),
  stopping('fingerprint', (host) => host.fingerprint$.pipe(filter(({ healthy }) => !healthy))),
  stopping('node-state', (host) => host.node$.pipe(filter(({ instances }) => instances.length === 0))),
]
