// The stages without a host: a registry, and what flows from it, joined by hand. Here: plugins that somebody else runs and registers.
//
//   node --import tsx/esm examples/compose-your-own.ts
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  abortable,
  connectionStates,
  csiKind,
  defaultTiming,
  dial,
  fingerprints,
  healthEvents,
  listen,
  memoryStore,
  openConnection,
  pluginInstances,
  Registry,
  shareByKey,
  watchSocket,
  type ConnectionTarget,
  type SocketSight,
  type TaskState,
} from 'plugstream'
import { scriptedPlugin } from 'plugstream/testing'
import { connectable, filter, firstValueFrom, NEVER, of, ReplaySubject, tap } from 'rxjs'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-compose-'))
const socketPath = join(scratch, 'csi.sock')
const registry = await Registry.open({ store: memoryStore() })
const kind = csiKind()

// One watch a socket, shared by all who look at it; closing a channel takes a moment, which the end of this program waits for.
const closing: Promise<void>[] = []
const connection = shareByKey(
  (target: ConnectionTarget) => target.socketPath,
  (target) =>
    connectionStates(
      listen<SocketSight>((listener) => watchSocket(target.socketPath, listener)),
      {
        connect: () =>
          openConnection(
            () => kind.open(target.socketPath),
            (work) => closing.push(work),
          ),
        dial: () => abortable((signal) => dial(target.socketPath, signal)),
      },
      defaultTiming,
    ),
)
const untold: TaskState = { phase: 'unknown', run: 0, description: 'somebody else runs it' }
const ports = {
  connection,
  taskState: () => of(untold),
  apply: (change: Parameters<Registry['apply']>[0]) => registry.apply(change),
}
const instance$ = connectable(pluginInstances(registry.watch$, ports, defaultTiming), {
  connector: () => new ReplaySubject(),
})

const health$ = healthEvents(instance$, { now: Date.now }).pipe(
  tap(({ plugin, healthy, reason }) => console.log('health', plugin.type, healthy ? 'healthy' : reason)),
)
const fingerprint$ = fingerprints(instance$, { now: Date.now, outdated$: NEVER }, defaultTiming).pipe(
  tap(({ plugin, node }) => console.log('fingerprint', plugin.type, plugin.version, node?.id, node?.names.join(' '))),
)
const river = instance$.connect()
const known = firstValueFrom(fingerprint$.pipe(filter(({ healthy }) => healthy)))
const gone = firstValueFrom(health$.pipe(filter(({ final }) => final)))

const plugin = await scriptedPlugin({ socketPath, script: { version: '1.2.3' } })
const registration = await registry.register({
  type: 'csi-node',
  name: 'by-hand',
  allocId: 'one',
  connection: { socketPath },
})
await known
await registration.deregister()
await gone

river.unsubscribe()
await registry.close()
await Promise.all(closing)
await plugin.close()
await rm(scratch, { recursive: true, force: true })
