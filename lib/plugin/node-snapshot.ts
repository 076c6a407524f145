import type { PluginFingerprint } from './fingerprint.js'
import type { HealthReason } from './health.js'
import type { PluginInfo } from './plugin.js'

/** One instance as the node knows it now. */
export interface InstanceSnapshot {
  plugin: PluginInfo
  /** Whether it is its plugin's current instance. */
  current: boolean
  health: { healthy: boolean; reason: HealthReason; description: string; at: number }
  /** Absent until it was read for the first time. */
  fingerprint?: PluginFingerprint
}

/** The whole state of a node. */
export interface NodeSnapshot {
  nodeId: string
  /** Grows by one with each snapshot of this host. */
  version: number
  at: number
  /** The sequence number of the last registry event in it. */
  seq: number
  /** Oldest registration first. */
  instances: readonly InstanceSnapshot[]
}
