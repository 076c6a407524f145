import { asyncScheduler, defer, map, merge, of, skipWhile, tap, throttleTime, type Observable } from 'rxjs'
import { snapshotIntervalMs } from '../lib/defaults.js'
import type { PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { InstanceSnapshot, NodeSnapshot } from '../lib/plugin/node-snapshot.js'
import { instanceKey, pluginKey, type RegistryEvent } from '../lib/plugin/plugin.js'

export interface SnapshotSources {
  /** `registry.watch$`: present instances first, oldest first. */
  registryEvent$: Observable<RegistryEvent>
  health$: Observable<HealthEvent>
  fingerprint$: Observable<PluginFingerprint>
}

export interface SnapshotPorts {
  /** Unix ms. */
  now: () => number
}

/**
 * What changes on a node flows in; the whole of it flows out: at once, with all that the sources tell as they are subscribed to, then
 * with the first change at once and every further one within `snapshotIntervalMs`, however many there are.
 */
export function nodeSnapshots(
  { registryEvent$, health$, fingerprint$ }: SnapshotSources,
  { now }: SnapshotPorts,
  { nodeId }: { nodeId: string },
): Observable<NodeSnapshot> {
  return defer(() => {
    const instances = new Map<string, Omit<InstanceSnapshot, 'current'>>()
    const current = new Map<string, string>()
    let seq = 0
    let version = 0

    const registered = (event: RegistryEvent): void => {
      const { plugin } = event
      const key = instanceKey(plugin)
      seq = Math.max(seq, event.seq)
      if (event.current) current.set(pluginKey(plugin), instanceKey(event.current))
      else current.delete(pluginKey(plugin))
      if (event.kind === 'deregistered') instances.delete(key)
      else instances.set(key, { ...(instances.get(key) ?? { health: unknown(event) }), plugin })
    }
    const put = (plugin: RegistryEvent['plugin'], part: Partial<InstanceSnapshot>, final: boolean): void => {
      const known = instances.get(instanceKey(plugin))
      // a last word may come after the next registration of the same instance, of which it says nothing
      if (known && !final) instances.set(instanceKey(plugin), { ...known, ...part })
    }
    const change$ = merge(
      registryEvent$.pipe(tap(registered)),
      health$.pipe(
        tap(({ plugin, healthy, reason, description, at, final }) => {
          put(plugin, { health: { healthy, reason, description, at } }, final)
        }),
      ),
      fingerprint$.pipe(
        tap((fingerprint) => {
          put(fingerprint.plugin, { fingerprint }, fingerprint.final)
        }),
      ),
    )
    return merge(change$, of('all subscribed')).pipe(
      skipWhile((change) => change !== 'all subscribed'),
      throttleTime(snapshotIntervalMs, asyncScheduler, { leading: true, trailing: true }),
      map(() => ({
        nodeId,
        version: ++version,
        at: now(),
        seq,
        instances: [...instances].map(([key, instance]) => ({
          ...instance,
          current: current.get(pluginKey(instance.plugin)) === key,
        })),
      })),
    )
  })
}

function unknown({ restored, at }: RegistryEvent): InstanceSnapshot['health'] {
  const description = restored ? 'it was restored; nothing is known of it yet' : 'nothing is known of it yet'
  return { healthy: false, reason: 'unknown', description, at }
}
