import { map, merge, type Observable } from 'rxjs'
import type { PlugstreamError } from '../lib/errors.js'
import type { PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { PluginRef, RegistryEvent } from '../lib/plugin/plugin.js'
import type { Replacement } from '../lib/task/replacement.js'
import type { TaskNote } from '../lib/task/task.js'
import type { VolumeEvent } from '../lib/volume/volume.js'

export interface EdgeSources {
  registryEvent$: Observable<RegistryEvent>
  health$: Observable<HealthEvent>
  fingerprint$: Observable<PluginFingerprint>
  volumeEvent$: Observable<VolumeEvent>
  note$: Observable<TaskNote>
  replacement$: Observable<Replacement>
  problem$: Observable<PlugstreamError>
}

/** A line of diagnostic output, and the namespace it belongs to. */
export interface EdgeLine {
  noun: 'registry' | 'health' | 'fingerprint' | 'volume' | 'task' | 'host'
  line: string
}

/** What a host tells flows in; one line for each of it flows out, without anything a secret could be in. */
export function edgeLines({
  registryEvent$,
  health$,
  fingerprint$,
  volumeEvent$,
  note$,
  replacement$,
  problem$,
}: EdgeSources): Observable<EdgeLine> {
  const lines = <T>(
    source$: Observable<T>,
    noun: EdgeLine['noun'],
    words: (value: T) => string,
  ): Observable<EdgeLine> => source$.pipe(map((value) => ({ noun, line: words(value) })))
  return merge(
    lines(registryEvent$, 'registry', ({ kind, plugin, current, seq, restored, reason }) =>
      [
        `${seq} ${nameOf(plugin)} ${plugin.version} ${kind}`,
        ...(restored ? ['restored'] : []),
        ...(reason === undefined ? [] : [reason]),
        `current ${current?.allocId ?? 'none'}`,
      ].join(', '),
    ),
    lines(health$, 'health', ({ plugin, healthy, reason, description, final }) =>
      [`${nameOf(plugin)} ${healthy ? 'healthy' : 'unhealthy'}`, reason, description, ...(final ? ['final'] : [])].join(
        ', ',
      ),
    ),
    lines(fingerprint$, 'fingerprint', ({ plugin, healthy, controller, node, final }) =>
      [
        `${nameOf(plugin)} ${healthy ? 'healthy' : 'unhealthy'}`,
        ...(controller ? [`controller ${controller.names.join(' ')}`] : []),
        ...(node ? [`node ${node.id} ${node.names.join(' ')}`] : []),
        ...(final ? ['final'] : []),
      ].join(', '),
    ),
    lines(volumeEvent$, 'volume', ({ kind, plugin, namespace, volumeId, allocId, message }) =>
      [`${plugin} ${volumeId} ${kind}`, ...[namespace, allocId].filter((one) => one !== undefined), message].join(', '),
    ),
    lines(note$, 'task', ({ task, kind, message }) => `${task.allocId} ${task.taskName} ${kind}, ${message}`),
    lines(replacement$, 'task', ({ plugin, from, to, phase, failure }) =>
      [
        `${from.allocId} ${from.taskName} replaced by ${to.allocId} in ${plugin}`,
        phase,
        ...(failure ? [failure.message] : []),
      ].join(', '),
    ),
    lines(problem$, 'host', ({ code, message }) => `${code} ${message}`),
  )
}

function nameOf({ type, name, allocId }: PluginRef): string {
  return `${type} ${name} ${allocId}`
}
