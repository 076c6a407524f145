import { NEVER } from 'rxjs'
import type { PluginFacts, PluginFingerprint } from '../../../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../../../lib/plugin/health.js'
import { refOf, type PluginInfo, type RegistryEvent } from '../../../lib/plugin/plugin.js'
import type { PluginTask, TaskEvent } from '../../../lib/task/task.js'
import type { ConnectionState, PluginInstance, TaskState } from '../../../streams/values.js'
import { fakeConnection, lasting } from './connection.js'

/** Values of the river, each complete and plain; a test names what matters to it and leaves the rest. */

export function pluginInfo(overrides: Partial<PluginInfo> = {}): PluginInfo {
  return {
    type: 'csi-node',
    name: 'ebs',
    allocId: 'a1',
    version: '1.0.0',
    provider: 'ebs.csi',
    connection: { socketPath: '/run/a1/csi.sock' },
    options: { taskName: 'driver' },
    registeredAt: 0,
    ...overrides,
  }
}

export function registryEvent(overrides: Partial<RegistryEvent> = {}): RegistryEvent {
  const plugin = overrides.plugin ?? pluginInfo()
  return { kind: 'registered', plugin, current: plugin, seq: 1, at: 0, restored: false, ...overrides }
}

export function taskState(overrides: Partial<TaskState> = {}): TaskState {
  return { phase: 'running', run: 1, description: '', ...overrides }
}

export function pluginTask(overrides: Partial<PluginTask> = {}): PluginTask {
  return { allocId: 'a1', taskName: 'driver', isolation: 'none', ...overrides }
}

/** An event of a task; an exit is a crash that is restarted. */
export function taskEvent(kind: TaskEvent['kind'], task: PluginTask = pluginTask()): TaskEvent {
  return kind === 'exited' ? { kind, task, at: 0, code: 1, signal: null, willRestart: true } : { kind, task, at: 0 }
}

/** Healthy, over a connection that answers everything at once. */
export function connectionState(overrides: Partial<ConnectionState> = {}): ConnectionState {
  return {
    healthy: true,
    reason: 'ready',
    description: 'ready',
    answers: true,
    epoch: 1,
    connection: someConnection,
    ...overrides,
  }
}

/** Not healthy, and nobody there. */
export function nobodyThere(overrides: Partial<ConnectionState> = {}): ConnectionState {
  return {
    healthy: false,
    reason: 'socket-missing',
    description: 'there is no socket',
    answers: false,
    epoch: 0,
    connection: undefined,
    ...overrides,
  }
}

const someConnection = fakeConnection()

/** Registered, not restored, and there for good; nothing is known of its state. */
export function pluginInstance(overrides: Partial<PluginInstance> & { plugin?: PluginInfo } = {}): PluginInstance {
  const { plugin = pluginInfo(), ...rest } = overrides
  return { ref: refOf(plugin), restored: false, plugin$: lasting(plugin), state$: NEVER, gone$: NEVER, ...rest }
}

export function healthEvent(overrides: Partial<HealthEvent> = {}): HealthEvent {
  return {
    plugin: pluginInfo(),
    healthy: true,
    reason: 'ready',
    description: 'ready',
    at: 0,
    final: false,
    ...overrides,
  }
}

export function pluginFacts(overrides: Partial<PluginFacts> = {}): PluginFacts {
  return {
    requiresControllerPlugin: false,
    requiresTopologies: false,
    node: { id: 'node-1', names: ['STAGE_UNSTAGE_VOLUME'], unknown: [] },
    ...overrides,
  }
}

export function pluginFingerprint(overrides: Partial<PluginFingerprint> = {}): PluginFingerprint {
  return {
    ...pluginFacts(),
    plugin: pluginInfo(),
    healthy: true,
    healthDescription: 'healthy',
    updatedAt: 0,
    final: false,
    ...overrides,
  }
}
