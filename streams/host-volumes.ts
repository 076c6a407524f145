import {
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  from,
  map,
  merge,
  of,
  Subject,
  switchMap,
  type Observable,
} from 'rxjs'
import { now } from '../lib/clock.js'
import type { CsiClient } from '../lib/csi/client.js'
import { checkAccess, checkRequest, requestFields } from '../lib/csi/check-request.js'
import type { PlugstreamError } from '../lib/errors.js'
import type { HealthEvent } from '../lib/plugin/health.js'
import { instanceKey, type PluginInfo, type PluginType } from '../lib/plugin/plugin.js'
import { nameOf, type PluginClients } from '../lib/plugin/plugin-clients.js'
import type { StateStore } from '../lib/store/state-store.js'
import { sameValue } from '../lib/task/task-spec.js'
import { ControllerCalls } from '../lib/volume/controller-calls.js'
import type { ControllerAnswer, ControllerCall, ControllerRequest } from '../lib/volume/controller-call.js'
import { Discretion } from '../lib/volume/discretion.js'
import { volumeFiles } from '../lib/volume/files.js'
import { Operations } from '../lib/volume/operations.js'
import { PluginHalves } from '../lib/volume/plugin-halves.js'
import type { VolumePorts } from '../lib/volume/ports.js'
import { givenSecrets, type GiveSecrets } from '../lib/volume/secrets.js'
import type { VolumeCallOptions, VolumeEvent, VolumeState } from '../lib/volume/volume.js'
import { VolumeManager } from '../lib/volume/volume-manager.js'
import { VolumeReports } from '../lib/volume/volume-reports.js'
import { firstValue } from './operators/first-value.js'
import type { PresentState } from './present-state.js'
import type { Registry } from './registry.js'

/** A call of a controller: see {@link HostVolumes}. */
type Call<Name extends ControllerCall> = (
  request: ControllerRequest<Name>,
  options?: VolumeCallOptions,
) => Promise<ControllerAnswer<Name>>

/**
 * Volumes of a host: `host.volumes`.
 *
 * Every method takes `{ signal, timeoutMs }` (default: two minutes), which count for everything: its turn, since there is one operation on
 * a volume at a time, the wait for its plugin, and the calls. A plugin that is not there is waited for, also one of a name that nobody has.
 *
 * They reject with ERR_OPTION_INVALID naming the field, ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED, ERR_STORE_WRITE, and what the calls of {@link CsiClient} reject with; `mount` and `unmount` also with ERR_MOUNT, and `mount` with
 * ERR_VOLUME_BUSY where the volume is staged for another kind of use. `stats`, `health` and `expand` are about volumes mounted here; for
 * others they reject with ERR_OPTION_INVALID.
 *
 * A call in the storage (from `create` on) of which nobody knows what became is made again until it is known, also where its caller gave
 * up, and after a restart of the host: what was given up may be done all the same. Make it again to hear of it. A delete ends that for
 * whatever of its kind was to be made with that plugin, since it may be what is deleted.
 *
 * @example
 * const { volume } = await host.volumes.create({ plugin: 'disk', name: 'data', volumeCapabilities: [access] })
 * await using mounted = await host.volumes.mount({ plugin: 'disk', volumeId: volume.volumeId, allocId: 'web-1' })
 * await writeFile(join(mounted.path, 'hello'), 'world')
 */
export interface HostVolumes
  extends Pick<VolumeManager, 'mount' | 'unmount' | 'list'>, Pick<VolumeReports, 'stats' | 'health' | 'expand'> {
  /** Every volume that the host holds, now and whenever something of that is another. Completes when the host closes. */
  readonly state$: Observable<readonly VolumeState[]>
  /** What happens to volumes. Completes when the host closes. */
  readonly event$: Observable<VolumeEvent>
  /** Makes a volume; one that is there under that name is given back. From a snapshot or as a clone with `volumeContentSource`. */
  readonly create: Call<'createVolume'>
  /** Deletes a volume; one that its plugin does not know is deleted. @throws ERR_VOLUME_BUSY where this host holds it. */
  readonly delete: Call<'deleteVolume'>
  /** Attaches a volume to a node. What this host mounts it attaches by itself. */
  readonly attach: Call<'controllerPublishVolume'>
  /** Detaches a volume from a node. @throws ERR_VOLUME_BUSY where this host holds it. */
  readonly detach: Call<'controllerUnpublishVolume'>
  /** Changes what can be changed of a volume. */
  readonly modify: Call<'controllerModifyVolume'>
  /** Lets a volume grow in its storage; `expand` is for one that this host has mounted. */
  readonly expandInStorage: Call<'controllerExpandVolume'>
  /** Takes a snapshot; one that is there under that name is given back. */
  readonly snapshot: Call<'createSnapshot'>
  /** Deletes a snapshot; one that its plugin does not know is deleted. */
  readonly deleteSnapshot: Call<'deleteSnapshot'>
  /** Takes snapshots of several volumes at one point in time. */
  readonly snapshotGroup: Call<'createVolumeGroupSnapshot'>
  /** Deletes a group of snapshots with its snapshots. */
  readonly deleteSnapshotGroup: Call<'deleteVolumeGroupSnapshot'>
}

/** What the volumes of a host stand on. */
export interface VolumesInit {
  store: StateStore
  registry: Registry
  health: PresentState<HealthEvent>
  clients: PluginClients
  volumeRoot: (plugin: string) => string
  secrets: GiveSecrets | undefined
  problem: (problem: PlugstreamError) => void
  /** A plugin has no room for another volume on this node, whatever it was read to have. */
  isFull: (plugin: string) => void
  closeTimeoutMs: number
}

/** Opens the volumes of a host: what is on record is known, and uncertain until its plugin has been `ready`. */
export async function openVolumes(init: VolumesInit): Promise<{
  volumes: HostVolumes
  /** A plugin is there, or there again. */
  ready: (plugin: PluginInfo) => void
  close: () => Promise<void>
}> {
  const ports = volumePorts(init)
  const operations = new Operations()
  const halves = new PluginHalves(ports, operations)
  const event$ = new Subject<VolumeEvent>()
  const changed$ = new Subject<void>()
  let isClosed = false
  const tell = {
    event: (event: VolumeEvent) => event$.next(event),
    problem: init.problem,
    changed: () => changed$.next(),
  }
  const manager = await VolumeManager.open(ports, operations, halves, tell)
  const calls = await ControllerCalls.open(ports, operations, (ref) => manager.mustBeFree(ref), tell)
  const reports = new VolumeReports(ports, operations, halves, manager)

  const call =
    <Name extends ControllerCall>(name: Name): Call<Name> =>
    (request, options) =>
      calls.make(name, request, options)
  return {
    volumes: {
      mount: (request, options) => manager.mount(request, options),
      unmount: (ref, options) => manager.unmount(ref, options),
      list: () => manager.list(),
      stats: (ref, options) => reports.stats(ref, options),
      health: (ref, options) => reports.health(ref, options),
      expand: (request, options) => reports.expand(request, options),
      create: call('createVolume'),
      delete: call('deleteVolume'),
      attach: call('controllerPublishVolume'),
      detach: call('controllerUnpublishVolume'),
      modify: call('controllerModifyVolume'),
      expandInStorage: call('controllerExpandVolume'),
      snapshot: call('createSnapshot'),
      deleteSnapshot: call('deleteSnapshot'),
      snapshotGroup: call('createVolumeGroupSnapshot'),
      deleteSnapshotGroup: call('deleteVolumeGroupSnapshot'),
      event$: event$.asObservable(),
      state$: defer(() => (isClosed ? EMPTY : merge(of(undefined), changed$))).pipe(
        // Changes of one moment are one picture.
        switchMap(() => from(Promise.resolve())),
        map(() => manager.list()),
        distinctUntilChanged((a, b) => sameValue(a, b)),
      ),
    },
    ready: ({ type, name }) => {
      if (type === 'csi-node') manager.pluginReady(name)
      if (type === 'csi-controller') calls.pluginReady(name)
    },
    close: async () => {
      manager.close()
      calls.close()
      await operations.close(init.closeTimeoutMs)
      isClosed = true
      for (const subject$ of [event$, changed$]) subject$.complete()
    },
  }
}

function volumePorts({ store, registry, health, clients, volumeRoot, secrets, isFull }: VolumesInit): VolumePorts {
  const newestHealthy = (type: PluginType, name: string): PluginInfo | undefined =>
    registry.instances(type, name).find((instance) => health.get(instanceKey(instance))?.healthy)
  const made = new Map<string, CsiClient>()
  const discretion = new Discretion()
  const clientOf = (type: PluginType, name: string, what: string): CsiClient =>
    clients.of(type, what, () => registry.instances(type, name)) as CsiClient
  return {
    store,
    files: volumeFiles(),
    volumeRoot,
    // One that is being replaced may have no instance for a moment.
    isRegistered: (type, name) => registry.instances(type, name).length > 0 || clients.isHeld({ type, name }),
    ready: async (type, name, signal) => {
      const found$ = merge(of(undefined), health.all$).pipe(
        map(() => newestHealthy(type, name)),
        filter((plugin) => plugin !== undefined),
      )
      return newestHealthy(type, name) ?? firstValue(found$, `waiting for ${nameOf({ type, name })}`, { signal })
    },
    client: (type, name) => {
      const what = nameOf({ type, name })
      const client = made.get(what) ?? discretion.client(name, clientOf(type, name, what))
      made.set(what, client)
      return client
    },
    isFull,
    checkAccess,
    check: checkRequest,
    fields: requestFields,
    secrets: async (request, signal) => {
      const given = await givenSecrets(secrets, request, signal)
      discretion.gives(request.plugin, given)
      return given
    },
    now,
  }
}
