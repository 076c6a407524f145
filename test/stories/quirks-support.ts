import type { MountRequest } from '../../lib/volume/volume.js'
import type { CsiRpc } from '../../lib/csi/rpcs.js'
import type { PluginTask } from '../../lib/task/task.js'
import type { HostInit } from '../../streams/plugin-host.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import { inDirectory, pluginTask, type Story } from './support.js'
import { withVolumes, type VolumeStory } from './volumes-support.js'

export { failureOf } from './volumes-support.js'

/** A story of volumes in a directory of its own, of which no mount is expected. */
export function aVolumeStory(tell: (story: VolumeStory) => Promise<void>, init: Partial<HostInit> = {}) {
  return (): Promise<void> => inDirectory((directory) => withVolumes(directory, init, tell))
}

/** The task of a plugin named `disk`. */
export function diskTask(type: 'controller' | 'node' | 'monolith' = 'monolith', allocId = 'a1'): PluginTask {
  return pluginTask({ allocId, csiPlugin: { id: 'disk', type } })
}

/** A block device, since a scripted plugin mounts nothing, and the specification promises no mount for these. */
export const block = { kind: 'block', accessMode: 'MULTI_NODE_MULTI_WRITER' } as const
/** One use of a volume of it. */
export const use = { plugin: 'disk', volumeId: 'v1', allocId: 'web', access: block } as const satisfies MountRequest

/** What the plugin was asked about volumes, oldest first. */
export function volumeCalls({ calls }: Pick<ScriptedPlugin, 'calls'>): CsiRpc[] {
  return calls.filter(({ request }) => 'volume_id' in request).map(({ rpc }) => rpc)
}

export function requestsOf({ calls }: Pick<ScriptedPlugin, 'calls'>, rpc: CsiRpc): Record<string, unknown>[] {
  return calls.filter((call) => call.rpc === rpc).map(({ request }) => request)
}

export const mounting = ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'] as const
export const unmounting = ['NodeUnpublishVolume', 'NodeUnstageVolume', 'ControllerUnpublishVolume'] as const

/** Starts a plugin as `story.start` does, and counts how many of its callers wait for it at the same time about one volume. */
export async function startCounted(story: Story, task: PluginTask, script: PluginScript) {
  const waiting = new Map<unknown, number>()
  const count = ({ request }: { request: Record<string, unknown> }, by: 1 | -1): number => {
    const volume = request['volume_id']
    if (volume === undefined) return 0
    const now = (waiting.get(volume) ?? 0) + by
    waiting.set(volume, now)
    return now
  }
  const counted = { mostAtOnce: 0 }
  story.tell('prestart', task)
  const { socketPath } = await story.host.prepare(task)
  const plugin = story.keep(
    await scriptedPlugin({
      socketPath,
      script,
      onCall: async (call) => void (counted.mostAtOnce = Math.max(counted.mostAtOnce, count(call, 1))),
      onEnd: (call) => void count(call, -1),
    }),
  )
  story.tell('started', task)
  return { plugin, counted }
}
