// A host of two tasks that outlive it, one a plugin and one not. `argv`: state directory, what becomes of the tasks, the plugin's version.
// It says `begun <name> <pid>` of each and `healthy`; told to end, by the end of its input, it closes.
import { once } from 'node:events'
import { of, tap } from 'rxjs'
import { processDriver } from '../../../lib/task/process-driver.js'
import { openHost } from '../../../streams/host.js'
import { runTasks } from '../../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../../testing/spawn-scripted-plugin.js'

const [, , stateDir = '', onClose = 'keep', version = '1.0.0'] = process.argv
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const plugin = {
  allocId: 'a1',
  taskName: 'driver',
  isolation: 'none',
  csiPlugin: { id: 'ebs', type: 'node' },
  ...scriptedPluginCommand({ version }),
} as const
const plain = { allocId: 'a1', taskName: 'plain', isolation: 'none', command: ['sleep', '600'] } as const
const host = await openHost({
  stateDir,
  task$: (ports) =>
    runTasks(of(plugin, plain), processDriver(), ports, { onClose: onClose as 'stop' | 'keep' }).pipe(
      tap((event) => {
        if (event.kind === 'started') say(`begun ${event.task.taskName} ${event.pid}`)
        if (event.kind === 'exited') say(`exited ${event.task.taskName} ${event.code} ${event.signal}`)
      }),
    ),
})
host.health$.subscribe(({ healthy, plugin: { version } }) => healthy && say(`healthy ${version}`))
process.stdin.resume()
await once(process.stdin, 'end')
await host.close()
say('closed')
