import type { Observable } from 'rxjs'
import type { PlugstreamError } from '../lib/errors.js'
import { fieldsOf } from '../lib/options.js'
import type { HostOptions } from '../lib/host/settings.js'
import type { PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import type { NodeSnapshot } from '../lib/plugin/node-snapshot.js'
import type { PluginInfo, PluginType } from '../lib/plugin/plugin.js'
import type { KeyvLike, StateStore } from '../lib/store/state-store.js'
import type { Replacement } from '../lib/task/replacement.js'
import type { TaskOrder } from '../lib/task/task-spec.js'
import type { PluginTask, TaskEvent, TaskNote } from '../lib/task/task.js'
import type { GiveSecrets } from '../lib/volume/secrets.js'
import type { HostPorts } from './host-ports.js'
import type { ReplaceOptions } from './host-replacements.js'
import type { HostVolumes } from './host-volumes.js'
import type { WaitOptions } from './operators/first-value.js'
import type { Dispensers, Registry } from './registry.js'

/** What a host is opened with. */
export interface HostInit extends HostOptions {
  /**
   * What happens to the host's tasks: a stream, subscribed in the call itself, whose events wait until the host is open; or a
   * function that makes one, as `runTasks` does, called when the host is open. A source that ends or fails deregisters nothing.
   */
  task$: Observable<TaskEvent> | ((ports: HostPorts) => Observable<TaskEvent>)
  /** Default: Keyv on @keyv/sqlite in `stateDir`. One that is given is not closed by the host. */
  store?: KeyvLike | StateStore | undefined
  /** What `registry.dispense` gives, by plugin type. Default: each kind's client. */
  dispensers?: Dispensers | undefined
  /** Gives secrets by the `secretsRef` of what is done with a volume, within the time that has. Default: there are none. */
  secrets?: GiveSecrets | undefined
}

/** The names of its fields. */
export const hostFields = fieldsOf<HostInit>({
  stateDir: true,
  task$: true,
  store: true,
  nodeId: true,
  registrationDirectory: true,
  kinds: true,
  timing: true,
  dispensers: true,
  secrets: true,
})

/**
 * A running host. Its streams complete when it closes, and never fail. Who subscribes after that is told nothing of what the host saw, since
 * nobody looks any more; what is on record is still told: who is registered, and what went wrong.
 */
export interface PluginHost extends HostPorts, AsyncDisposable {
  readonly registry: Registry
  /** Volumes of CSI plugins: in use on this host, and in their storage. */
  readonly volumes: HostVolumes
  /** Present state of every instance first. */
  readonly health$: Observable<HealthEvent>
  /** Present state of every instance first. */
  readonly fingerprint$: Observable<PluginFingerprint>
  /** What a runner is to do when a task is replaced; see {@link HostPorts.order$}. */
  readonly order$: Observable<PluginTask | TaskOrder>
  /** How far each replacement is, from now on. */
  readonly replacement$: Observable<Replacement>
  /** Lines for the tasks' own event lists, from now on. */
  readonly note$: Observable<TaskNote>
  /** The whole node as it is now, then after changes: after the first at once, and at most every 50 ms. */
  readonly node$: Observable<NodeSnapshot>
  /** What went wrong in the host itself: the last 100, then each. Records, saves, sources; a sick plugin is none of it. */
  readonly problem$: Observable<PlugstreamError>
  /**
   * Resolves with an instance of a plugin as soon as there is one; with `healthy`, as soon as one is healthy. Waits for a name that nobody
   * has yet, too: without `timeoutMs`, for ever.
   * @throws ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED.
   */
  waitFor(
    type: PluginType,
    name: string,
    options?: WaitOptions & { healthy?: boolean | undefined },
  ): Promise<PluginInfo>
  /**
   * A client bound to the name of a plugin: each call goes to its newest healthy instance, else to its newest.
   * @throws ERR_PLUGIN_UNKNOWN where no kind has this type. Its calls reject with ERR_PLUGIN_UNKNOWN where there is no instance, and
   * ERR_PLUGIN_NOT_READY where none is connected.
   * @example
   * const client = host.client<CsiClient>('csi-node', 'ebs')
   * await client.nodeGetInfo()
   */
  client<T>(type: PluginType, name: string): T
  /**
   * Upgrades a plugin without a gap: starts a task in the place of the one that serves its plugin now, and stops that. Give it an alloc of
   * its own. Resolves with the new instances when the old task has stopped; one replacement of a plugin at a time, the others wait.
   *
   * What can do less than the old one (a capability lost, another node id, fewer volumes, a narrower topology) does not become current without
   * `force`. A new one that does not get ready, or does not stay well for `Timing.bakeMs`, is stopped, and the old one serves as before.
   * Whether both run at the same time is said by `PluginTask.upgrade`; while none runs, calls wait, for `Timing.holdMs` at most.
   *
   * @throws ERR_PLUGIN_CONFLICT naming what would be lost, ERR_PLUGIN_NOT_READY saying what the new one did, ERR_PLUGIN_UNKNOWN where there
   * is nothing to replace, ERR_USAGE where nobody follows `order$`, ERR_OPTION_INVALID, ERR_ABORTED, ERR_CLOSED. By then, the old one serves.
   * @example
   * await host.replace({ ...driver, allocId: 'ebs-2', command: ['/opt/ebs/2.0/driver'] })
   */
  replace<Task extends PluginTask>(task: Task, options?: ReplaceOptions): Promise<readonly PluginInfo[]>
  /** Ends everything the host began; deregisters nothing, and unmounts no volume. Idempotent. */
  close(): Promise<void>
}
