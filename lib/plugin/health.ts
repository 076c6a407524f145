import type { PluginInfo } from './plugin.js'

/** Why an instance is healthy or not. */
export type HealthReason =
  | 'unknown' // restored, and nothing learned yet
  | 'ready'
  | 'not-ready' // it answers that it is still initialising
  | 'probe-failed' // it answers with an error
  | 'probe-timeout' // it accepts, and does not answer
  | 'disconnected' // it accepts, and drops the connection
  | 'socket-missing'
  | 'socket-refused' // a socket that nobody listens on
  | 'not-a-socket'
  | 'access-denied'
  | 'not-csi' // it speaks, but not CSI
  | 'not-served' // the same for plugins of another kind: not their protocol
  | 'socket-replaced' // another server is on the path; it has not answered yet
  | 'task-exited'
  | 'stopping'
  | 'stopped'
  | 'deregistered'
  | 'lost' // restored, claimed by no task, and silent for too long

/** Told when `healthy` or `reason` changes; the last one of an instance has `final: true`. */
export interface HealthEvent {
  plugin: PluginInfo
  healthy: boolean
  reason: HealthReason
  /** For people. */
  description: string
  /** Unix ms. */
  at: number
  final: boolean
}
