// A program of somebody else, as an ES module and as CommonJS: compiled twice, and run twice.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keyv } from 'keyv'
import { firstValueFrom, NEVER, type Observable } from 'rxjs'
import {
  openHost,
  PlugstreamError,
  processDriver,
  Registry,
  runTasks,
  type HealthEvent,
  type NodeSnapshot,
  type PluginFingerprint,
  type PluginHost,
  type PluginInfo,
  type RegistryEvent,
  type TaskEvent,
  type TaskNote,
} from 'plugstream'

const stateDir = mkdtempSync(join(tmpdir(), 'plugstream-'))
const plugin = { type: 'csi-node', name: 'ebs', allocId: 'a', connection: { socketPath: join(stateDir, 'ebs.sock') } }

async function main(): Promise<void> {
  const registry = await Registry.open({ store: new Keyv(), dispensers: { 'csi-node': (info) => info.name.length } })
  const event = firstValueFrom(registry.event$)
  const registration = await registry.register(plugin)
  const { kind, current }: RegistryEvent = await event
  const [listed]: readonly PluginInfo[] = registry.list('csi-node')
  const dispensed = registry.dispense<number>('csi-node', 'ebs')
  await registration.deregister('enough')
  await registry.close()

  const host: PluginHost = await openHost({ stateDir, store: new Keyv(), task$: NEVER })
  const health$: Observable<HealthEvent> = host.health$
  const fingerprint$: Observable<PluginFingerprint> = host.fingerprint$
  const note$: Observable<TaskNote> = host.note$
  const { version }: NodeSnapshot = await firstValueFrom(host.node$)
  const refused = await host
    .waitFor('csi-node', 'nobody', { timeoutMs: 1 })
    .catch((e: unknown) => (e instanceof PlugstreamError ? e.code : e))
  await host.close()

  const driven: typeof runTasks extends (...args: never[]) => Observable<TaskEvent> ? true : false = true
  const streams = [health$, fingerprint$, note$].map((stream$) => typeof stream$.subscribe)
  const words = [
    kind,
    current?.allocId,
    listed?.name,
    dispensed,
    version,
    refused,
    driven,
    typeof processDriver,
    ...streams,
  ]
  console.log(JSON.stringify(words))
}

main().finally(() => rmSync(stateDir, { recursive: true, force: true }))
