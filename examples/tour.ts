// The tour: `npm start`, or `npm start -- --once` to end by itself. It shows, with real drivers as processes, what a host is told and
// how long each thing takes. Everything it makes is in a scratch directory, and gone afterwards.
import { once as event } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHost, processDriver, runTasks } from 'plugstream'
import type { HostPorts, PluginHost, RestartRequest, TaskEvent, TaskOrder, TaskSpec } from 'plugstream'
import { filter, firstValueFrom, lastValueFrom, share, Subject, timeout, type Observable } from 'rxjs'
import { hostpathCommand } from './hostpath-driver/command.js'
import { chapter, narrate, narrateTasks, say, Stopwatch, table } from './tour/narrator.js'

const staysUp = !process.argv.includes('--once')
const scratch = await mkdtemp(join(tmpdir(), 'plugstream-tour-'))
const stateDir = join(scratch, 'state')
const patienceMs = 30_000
const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const

// The tasks are run beside the host, so that they go on while it is closed and opened again: what happens to them reaches whichever
// host is open, and what that one asks for reaches them.
const input$ = new Subject<TaskSpec | TaskOrder>()
const restart$ = new Subject<RestartRequest>()
const ports: HostPorts = { prepare: (task) => host.prepare(task), restart$ }
const taskEvent$ = runTasks(input$, processDriver(), ports).pipe(share())
let host = await open()

/** A hostpath driver as a task. */
function driver(allocId: string, id: string, type: 'monolith' | 'node', version: string): TaskSpec {
  const command = hostpathCommand({
    name: id,
    version,
    mode: type,
    'node-id': 'tour',
    'state-dir': join(scratch, 'volumes', id),
  })
  return { allocId, taskName: 'driver', command, isolation: 'none', csiPlugin: { id, type } }
}

async function open(): Promise<PluginHost> {
  const opened = await openHost({ stateDir, task$: taskEvent$ })
  opened.restart$.subscribe((request) => restart$.next(request))
  narrate(opened)
  return opened
}

/** The next value that is as it should be; there is no waiting for ever in a tour. */
function next<T>(value$: Observable<T>, isIt: (value: T) => boolean): Promise<T> {
  return firstValueFrom(value$.pipe(filter(isIt), timeout(patienceMs)))
}
const healthIs = (allocId: string, healthy: boolean): Promise<unknown> =>
  next(host.health$, (health) => health.plugin.allocId === allocId && health.healthy === healthy)
const taskIs = (allocId: string, kind: TaskEvent['kind']): Promise<TaskEvent> =>
  next(taskEvent$, (told) => told.task.allocId === allocId && told.kind === kind)
const currentIs = (name: string, allocId: string): Promise<unknown> =>
  next(host.registry.plugins$, () => host.registry.instances('csi-node', name)[0]?.allocId === allocId)

async function tour(): Promise<void> {
  const watch = new Stopwatch()

  chapter('A host is open; a monolith and a node plugin in two allocs start')
  const first = taskIs('disk-1', 'started')
  const lap = watch.lap('start of three drivers until all are healthy')
  input$.next(driver('disk-1', 'disk', 'monolith', '1.0.0'))
  input$.next(driver('files-1', 'files', 'node', '1.0.0'))
  await currentIs('files', 'files-1')
  input$.next(driver('files-2', 'files', 'node', '1.0.0'))
  await Promise.all(['disk-1', 'files-1', 'files-2'].map((allocId) => healthIs(allocId, true)))
  lap()

  chapter('A volume is made, mounted for an alloc, and written to')
  const made = watch.lap('making a volume')
  const { volume } = await host.volumes.create({ plugin: 'disk', name: 'notes', volumeCapabilities: [access] })
  made()
  const notes = { plugin: 'disk', volumeId: volume.volumeId, allocId: 'web-1', access }
  const mounting = watch.lap('attaching, staging and publishing it')
  const { path } = await host.volumes.mount({ ...notes, volumeContext: volume.volumeContext })
  mounting()
  await writeFile(join(path, 'note'), 'written before the driver was killed')

  chapter('The monolith is killed, with the volume mounted')
  const started = await first
  const killed = [watch.lap('SIGKILL until the health event'), watch.lap('SIGKILL until it runs again')] as const
  const recovered = watch.lap('SIGKILL until it is healthy again')
  const again = taskIs('disk-1', 'started').then(killed[1])
  process.kill(started.kind === 'started' ? (started.pid ?? 0) : 0, 'SIGKILL')
  await healthIs('disk-1', false).then(killed[0])
  await again
  await healthIs('disk-1', true).then(recovered)
  say('volume', `its note says: ${await readFile(join(path, 'note'), 'utf8')}`)

  chapter('A newer version starts beside the older one, and is stopped again')
  const newer = watch.lap('start of a newer version until it is current')
  input$.next(driver('files-3', 'files', 'node', '2.0.0'))
  await currentIs('files', 'files-3').then(newer)
  await healthIs('files-3', true)
  const stopped = taskIs('files-3', 'stopped')
  const older = watch.lap('order to stop it until the older one is current')
  input$.next({ order: 'stop', allocId: 'files-3', taskName: 'driver' })
  await currentIs('files', 'files-2').then(older)
  await stopped

  chapter('The host closes and opens again; the drivers go on running')
  await host.close()
  const restored = watch.lap('opening until every restored plugin is healthy')
  host = await open()
  await Promise.all(['disk-1', 'files-1', 'files-2'].map((allocId) => healthIs(allocId, true))).then(restored)
  await next(host.node$, ({ instances }) => instances.every(({ fingerprint }) => fingerprint?.healthy))
  await next(host.volumes.state$, ([held]) => held?.claims[0]?.phase === 'mounted')

  chapter('The volume, held all the while, is unmounted and deleted')
  const unmounting = watch.lap('unpublishing, unstaging and detaching it')
  await host.volumes.unmount(notes)
  unmounting()
  await host.volumes.delete({ plugin: 'disk', volumeId: volume.volumeId })

  chapter('What the host knows, and how long it took')
  table(await firstValueFrom(host.node$))
  watch.print()
}

/** Stops the drivers and closes the host; also where the tour was left half-way. */
async function end(): Promise<void> {
  chapter('The drivers are stopped')
  for (const { plugin, volumeId, claims } of host.volumes.list())
    for (const { allocId } of claims)
      await host.volumes.unmount({ plugin, volumeId, allocId, access }, { timeoutMs: patienceMs })
  const stopped = lastValueFrom(taskEvent$, { defaultValue: undefined })
  for (const allocId of ['disk-1', 'files-1', 'files-2', 'files-3']) {
    input$.next({ order: 'stop', allocId, taskName: 'driver' })
  }
  input$.complete()
  await stopped
  running.unsubscribe()
  await host.close()
  await rm(scratch, { recursive: true, force: true })
}

const asked = Promise.race([event(process, 'SIGINT'), event(process, 'SIGTERM')])
const running = narrateTasks(taskEvent$)
try {
  const done = tour()
  await Promise.race([done, asked])
  if (staysUp) {
    console.log('\nThe host stays up; Ctrl-C ends it.')
    await asked
  }
} catch (failure) {
  console.error('\nA step went wrong:', failure)
  process.exitCode = 1
} finally {
  await end()
}
