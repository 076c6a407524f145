/**
 * plugstream: plugins as tasks. Task lifecycle events in; a persisted registry, health and fingerprints out.
 *
 * @packageDocumentation
 */

// A host, and what flows in and out of it.
export { openHost } from './host.js'
export type { HostInit, PluginHost } from './plugin-host.js'
export type { HostOptions } from '../lib/host/settings.js'
export type { HostPorts } from './host-ports.js'
export type { HostVolumes } from './host-volumes.js'
export type { GiveSecrets } from '../lib/volume/secrets.js'
export type {
  ClaimPhase,
  ClaimState,
  MountedVolume,
  MountRef,
  MountRequest,
  SecretsRequest,
  UnmountRef,
  VolumeAccess,
  VolumeCallOptions,
  VolumeEvent,
  VolumeObstacle,
  VolumeRef,
  VolumeState,
} from '../lib/volume/volume.js'
export type { ControllerAnswer, ControllerCall, ControllerRequest } from '../lib/volume/controller-call.js'
export type { ExpandRequest } from '../lib/volume/volume-reports.js'
export type {
  AccessMode,
  CapacityRange,
  CsiClient,
  MountAccess,
  NodeGetVolumeStatsResponse,
  Snapshot,
  TextMap,
  Topology,
  TopologyRequirement,
  Volume,
  VolumeCapability,
  VolumeContentSource,
  VolumeGroupSnapshot,
  VolumeHealth,
  VolumeProblem,
  VolumeUsage,
} from '../lib/csi/index.js'
export { outlet, type OutletInit, type OutletItem } from './outlets.js'
export type {
  CsiPluginConfig,
  PluginTask,
  RestartRequest,
  TaskEvent,
  TaskMount,
  TaskNote,
  TaskRef,
  TaskResources,
} from '../lib/task/task.js'
export type {
  PluginInfo,
  PluginRef,
  PluginRegistration,
  PluginType,
  RegistryChange,
  RegistryEvent,
} from '../lib/plugin/plugin.js'
export type { HealthEvent, HealthReason } from '../lib/plugin/health.js'
export type { Capabilities, NodeFacts, PluginFacts, PluginFingerprint } from '../lib/plugin/fingerprint.js'
export type { InstanceSnapshot, NodeSnapshot } from '../lib/plugin/node-snapshot.js'
export { PlugstreamError, errorCodes, type ErrorCode, type ErrorDetails, type ErrorInit } from '../lib/errors.js'
export { defaultTiming, type Timing } from '../lib/defaults.js'

// The registry by itself.
export { Registry, type Dispensers, type Registration, type RegistryInit, type RegistryStore } from './registry.js'
export type { WaitOptions } from './operators/first-value.js'
export { memoryStore } from '../lib/store/memory-store.js'
export { keyvStore } from '../lib/store/keyv-store.js'
export { sqliteStore, type SqliteInit, type SqliteStore } from '../lib/store/sqlite-store.js'
export type { KeyvLike, StateStore, StoreRecord, StoreWrite } from '../lib/store/state-store.js'

// Running tasks.
export { runTasks, type RunDriver, type RunHandle, type RunPorts, type RunTasksInit } from './run-tasks.js'
export { processDriver, type ProcessDriverInit } from '../lib/task/process-driver.js'
export { taskLogPaths, type TaskLogPaths } from '../lib/task/log-file.js'
export { defaultRestartPolicy, type RestartPolicy } from '../lib/task/restart-policy.js'
export type { Backoff } from '../lib/task/backoff.js'
export type { TaskDriver, TaskExit, TaskHandle, TaskSpec } from '../lib/task/driver.js'
export type { ReplaceOptions } from './host-replacements.js'
export type { Replacement } from '../lib/task/replacement.js'
export type { TaskOrder } from '../lib/task/task-spec.js'
export type { TaskRunState } from '../lib/task/task-run-state.js'

// Tasks that somebody else runs.
export { taskEvents } from './task-events.js'
export type { TaskLook, TaskSight } from '../lib/task/task-sight.js'

// Plugin kinds.
export { csiKind, type CsiKind } from '../lib/csi/kind.js'
export { grpcKind, type GrpcKind } from '../lib/grpc/kind.js'
export type { GrpcChannel } from '../lib/grpc/channel.js'
export type { GrpcClient, GrpcClientClass } from '../lib/grpc/client.js'
export type { GrpcPluginConfig } from '../lib/grpc/settings.js'
export { parseCsiPlugin } from '../lib/csi/csi-plugin.js'
export type {
  ChannelOptions,
  LinkState,
  PluginChannel,
  PluginGone,
  PluginIdentity,
  PluginKind,
  PluginTaskConfig,
  ProbeAnswer,
} from '../lib/plugin/kind.js'

// The stages, for those who compose a river of their own.
export { taskStates, type TaskStateChange } from './task-states.js'
export { superviseTasks, type SupervisedPlugin, type SupervisionPorts } from './supervise-tasks.js'
export { connectionStates, type ConnectionPorts } from './connection-states.js'
export { pluginInstances, type InstancePorts } from './plugin-instances.js'
export { healthEvents, type HealthPorts } from './health-events.js'
export { fingerprints, type FingerprintPorts } from './fingerprints.js'
export { lostInstances, type LostPorts } from './lost-instances.js'
export { announcedPlugins, type AnnouncementPorts } from './announced-plugins.js'
export type { AnnouncementNote } from '../lib/plugin/announcement-note.js'
export type { RegistrarInfo, RegistrarVerdict } from '../lib/plugin/announcement.js'
export { nodeSnapshots, type SnapshotPorts, type SnapshotSources } from './node-snapshots.js'
export { edgeLines, type EdgeLine, type EdgeSources } from './edge-lines.js'
export { presentState, type PresentState } from './present-state.js'
export type { Connection, ConnectionState, ConnectionTarget, PluginInstance, TaskState } from './values.js'
export { openConnection } from './operators/open-connection.js'
export { abortable } from './operators/abortable.js'
export { eachOf } from './operators/each-of.js'
export { listen } from './operators/listen.js'
export { poll, type PollInit } from './operators/poll.js'
export { shareByKey } from './operators/share-by-key.js'
export { dial } from '../lib/plugin/dial.js'
export { watchSocket } from '../lib/plugin/socket-watch.js'
export { watchSockets } from '../lib/plugin/socket-directory.js'
export { askRegistrar, tellRegistrar, type RegistrarCallOptions } from '../lib/csi/registrar.js'
export type { DialAnswer, DirectorySight, SocketSight } from '../lib/plugin/socket.js'
