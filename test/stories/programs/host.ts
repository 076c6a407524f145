// A host that runs one plugin, waits until it is healthy, closes and has nothing more to do. Whether its process ends then, is its own
// business: nothing here ends it. `argv`: state directory, what becomes of the task.
import { of, tap } from 'rxjs'
import { processDriver } from '../../../lib/task/process-driver.js'
import { openHost } from '../../../streams/host.js'
import { runTasks } from '../../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../../testing/spawn-scripted-plugin.js'

const [, , stateDir = '', onClose = 'stop'] = process.argv
const host = await openHost({
  stateDir,
  task$: (ports) =>
    runTasks(
      of({
        allocId: 'a1',
        taskName: 'driver',
        isolation: 'none',
        csiPlugin: { id: 'ebs', type: 'node' },
        ...scriptedPluginCommand(),
      }),
      processDriver(),
      ports,
      { onClose: onClose as 'stop' | 'keep' },
    ).pipe(tap((event) => event.kind === 'started' && process.stdout.write(`pid ${event.pid}\n`))),
})
host.health$.subscribe(({ healthy, reason }) => process.stdout.write(`${healthy} ${reason}\n`))
await host.waitFor('csi-node', 'ebs', { healthy: true })
await host.close()
process.stdout.write('closed\n')
