import { setTimeout as pause } from 'node:timers/promises'
import { filter, firstValueFrom, Subject } from 'rxjs'
import type { PluginTask, TaskEvent } from '../../../lib/task/task.js'
import { openHost } from '../../../streams/host.js'
import { BareClient, connectAsSoonAsPossible } from '../bare-client.js'
import { inTurn, type Bench, type Rounds } from '../bench.js'
import { PluginProcess } from '../plugin-process.js'
import { instant, scratch } from '../scratch.js'

/** Longer than the looks that follow each other fast, so that it is an event that has to tell of the socket. */
const startUpMs = 150

export const registering: Bench = {
  name: 'a-listens-to-registered',
  ours: 'a plugin listens until its registered event',
  limit: 'a loop that connects, probes and asks who it is',
  unit: 'ms',
  rounds: 100,
  aim: { medianAtMost: 30, ratioAtMost: 2 },
  open: async (): Promise<Rounds> => {
    const { directory, scope } = scratch()
    const task$ = new Subject<TaskEvent>()
    const host = await openHost({ stateDir: `${directory}/state`, task$ })
    scope.add(() => host.close())
    const plugin = new PluginProcess()
    scope.add(() => plugin.end())
    let count = 0

    const ours = async (): Promise<number> => {
      const task: PluginTask = {
        allocId: `alloc-${count}`,
        taskName: 'plugin',
        isolation: 'none',
        csiPlugin: { id: 'bench', type: 'node' },
      }
      const { socketPath } = await host.prepare(task)
      const registered = firstValueFrom(host.registry.event$.pipe(filter(({ kind }) => kind === 'registered'))).then(
        instant,
      )
      task$.next({ kind: 'prestart', task, at: instant() })
      task$.next({ kind: 'started', task, at: instant() })
      await pause(startUpMs)
      const listened = await plugin.listen(socketPath)
      const took = (await registered) - listened
      const gone = firstValueFrom(host.registry.event$.pipe(filter(({ kind }) => kind === 'deregistered')))
      task$.next({ kind: 'stopped', task, at: instant() })
      await gone
      await plugin.stopListening(socketPath)
      return took
    }

    const limit = async (): Promise<number> => {
      const socketPath = `${directory}/${count}.sock`
      const client = new BareClient(socketPath)
      const asked = connectAsSoonAsPossible(socketPath)
        .then(() => client.ask())
        .then(instant)
      await pause(startUpMs)
      const listened = await plugin.listen(socketPath)
      const took = (await asked) - listened
      client.close()
      await plugin.stopListening(socketPath)
      return took
    }

    return {
      round: (limitFirst) => {
        count++
        return inTurn(ours, limit)(limitFirst)
      },
      close: () => scope.close(),
    }
  },
}
