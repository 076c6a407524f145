// A host of two tasks that outlive it, one a plugin and one not. `argv`: state directory, what becomes of the tasks, the plugin's version,
// and `unsaved` for a host that dies when both have begun, before either is on record.
// It says `begun <name> <pid>` of each and `healthy`; told to end, by the end of its input, it closes.
import { once } from 'node:events'
import { join } from 'node:path'
import { of, tap } from 'rxjs'
import { sqliteStore } from '../../../lib/store/sqlite-store.js'
import type { StateStore } from '../../../lib/store/state-store.js'
import { processDriver } from '../../../lib/task/process-driver.js'
import { openHost } from '../../../streams/host.js'
import { runTasks } from '../../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../../testing/spawn-scripted-plugin.js'

const [, , stateDir = '', onClose = 'keep', version = '1.0.0', saving] = process.argv
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const plugin = {
  allocId: 'a1',
  taskName: 'driver',
  isolation: 'none',
  csiPlugin: { id: 'ebs', type: 'node' },
  ...scriptedPluginCommand({ version }),
} as const
const plain = { allocId: 'a1', taskName: 'plain', isolation: 'none', command: ['sleep', '600'] } as const
const file = join(stateDir, 'own.sqlite')
const own = await sqliteStore({ file })
let begun = 0
const store: StateStore = {
  atomic: own.atomic,
  read: (prefix) => own.read(prefix),
  close: () => own.close(),
  save: async (batch) => {
    const isOfProcess = batch.some(
      (write) => write.kind === 'put' && (write.value as { process?: unknown }).process !== undefined,
    )
    if (saving !== 'unsaved' || !isOfProcess) return own.save(batch)
    if (++begun === 2) process.kill(process.pid, 'SIGKILL')
    await new Promise(() => undefined)
  },
}
const host = await openHost({
  stateDir,
  store,
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
await own.close()
say('closed')
