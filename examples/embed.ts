// A host application that runs its task itself: it awaits `prepare`, tells what happens, and restarts when it is asked to.
//
//   node --import tsx/esm examples/embed.ts
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHost, type PluginHost, type PluginTask, type TaskEvent } from 'plugstream'
import { filter, firstValueFrom, Subject } from 'rxjs'
import { hostpathCommand } from './hostpath-driver/command.js'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-embed-'))
const [program, ...args] = hostpathCommand({ 'state-dir': join(scratch, 'volumes') })
const csiPlugin = { id: 'files', type: 'node' } as const
const task: PluginTask = { allocId: 'files-1', taskName: 'driver', isolation: 'none', csiPlugin }
const about = (): { task: PluginTask; at: number } => ({ task, at: Date.now() })
const taskEvent$ = new Subject<TaskEvent>()
let child: ChildProcess | undefined
let wanted = true

/** Runs the task again and again, as long as it is wanted. */
async function run(host: PluginHost): Promise<void> {
  while (wanted) {
    taskEvent$.next({ kind: 'prestart', ...about() })
    const { env } = await host.prepare(task)
    child = spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: 'ignore' })
    const exit = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>
    taskEvent$.next({ kind: 'started', ...(child.pid !== undefined && { pid: child.pid }), ...about() })
    const [code, signal] = await exit
    taskEvent$.next({ kind: 'exited', code, signal, willRestart: wanted, ...about() })
  }
  taskEvent$.next({ kind: 'stopped', ...about() })
}

const host = await openHost({ stateDir: join(scratch, 'state'), task$: taskEvent$ })
host.restart$.subscribe(() => child?.kill('SIGKILL'))
host.health$.subscribe(({ plugin, healthy, reason }) => console.log(plugin.name, healthy ? 'healthy' : reason))
const ran = run(host)

await host.waitFor('csi-node', 'files', { healthy: true, timeoutMs: 30_000 })
console.log('it crashes, and comes back')
const down = firstValueFrom(host.health$.pipe(filter(({ healthy }) => !healthy)))
child?.kill('SIGKILL')
await down
await host.waitFor('csi-node', 'files', { healthy: true, timeoutMs: 30_000 })

console.log('it is stopped')
const gone = firstValueFrom(host.health$.pipe(filter(({ final }) => final)))
wanted = false
taskEvent$.next({ kind: 'stopping', ...about() })
child?.kill('SIGTERM')
await Promise.all([ran, gone])
await host.close()
await rm(scratch, { recursive: true, force: true })
