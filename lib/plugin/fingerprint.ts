import type { PluginInfo } from './plugin.js'

/** What a plugin says it can do: names as in the CSI enums, and the numbers that no name is known for. */
export interface Capabilities {
  names: readonly string[]
  unknown: readonly number[]
}

/** What was read from a plugin, before it is tied to an instance. */
export interface PluginFacts {
  requiresControllerPlugin: boolean
  requiresTopologies: boolean
  controller?: Capabilities
  node?: NodeFacts
}

export interface NodeFacts extends Capabilities {
  /** The id the storage system knows this node by. */
  id: string
  /** How many volumes the node can take; absent: no limit. */
  maxVolumes?: number
  topology?: Readonly<Record<string, string>>
}

/**
 * What an instance can do. An unhealthy one keeps what was last known; a healthy one was read over the connection that is healthy now.
 */
export interface PluginFingerprint extends PluginFacts {
  plugin: PluginInfo
  healthy: boolean
  healthDescription: string
  /** Unix ms of the last change. */
  updatedAt: number
  /** The instance is gone: nothing comes after this. */
  final: boolean
}
