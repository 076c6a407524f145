import type { PluginTaskConfig } from '../../../lib/plugin/kind.js'
import type { PluginTask } from '../../../lib/task/task.js'

/** A task, and what a kind made of its configuration, with the given fields in place of plain ones. */
export function task(fields: Partial<PluginTask> = {}): PluginTask {
  return { allocId: 'a', taskName: 't', isolation: 'none', ...fields }
}

export function config(fields: Partial<PluginTaskConfig> = {}): PluginTaskConfig {
  return {
    id: 'p',
    types: ['csi-node'],
    healthTimeoutMs: 30_000,
    initTimeoutMs: 300_000,
    socketName: 'csi.sock',
    mountDir: '/csi',
    volumeDir: '/local/csi',
    endpointVariable: 'CSI_ENDPOINT',
    ...fields,
  }
}
