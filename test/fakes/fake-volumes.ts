import { requestFields } from '../../lib/csi/check-request.js'
import type { CsiClient } from '../../lib/csi/client.js'
import { PlugstreamError } from '../../lib/errors.js'
import type { PluginInfo, PluginType } from '../../lib/plugin/plugin.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import { Operations } from '../../lib/volume/operations.js'
import { PluginHalves } from '../../lib/volume/plugin-halves.js'
import type { Mount } from '../../lib/volume/mount-table.js'
import type { PathState } from '../../lib/volume/path-state.js'
import type { VolumePorts } from '../../lib/volume/ports.js'
import { VolumeManager } from '../../lib/volume/volume-manager.js'
import { VolumeReports } from '../../lib/volume/volume-reports.js'
import type { VolumeEvent } from '../../lib/volume/volume.js'
import { gate, type Gate } from './fake-store.js'

/** A call that came to the plugin. */
export interface FakeCall {
  rpc: string
  volumeId: string
  path?: string
  request: Readonly<Record<string, unknown>>
}

/** What takes the place of a call: it fails with what is thrown, before or after its effect. The signal is its caller's. */
export type Mishap = (call: FakeCall, effect: () => void, signal?: AbortSignal) => void | Promise<void>

/** How a driver fails. */
export function rpcFailure(grpcCode: string, outcome: 'final' | 'unknown' = 'final'): PlugstreamError {
  return new PlugstreamError('ERR_CSI_RPC', `failed: ${grpcCode}`, {
    retryable: outcome === 'unknown',
    details: { rpc: 'any', grpcCode, outcome },
  })
}

const unsupported = (rpc: string): PlugstreamError =>
  new PlugstreamError('ERR_CSI_UNSUPPORTED', `${rpc}: the plugin does not advertise it`, { details: { rpc } })

/**
 * A plugin and the machine it mounts on, in memory. It keeps to the specification: what is done is there again when it is asked for
 * again, nothing is unstaged that is published, and nothing published that is not staged. It notes two calls for one volume at once.
 */
export class FakePlugin {
  readonly calls: FakeCall[] = []
  /** Path to what is there. */
  readonly staged = new Map<string, string>()
  readonly published = new Map<string, { volumeId: string; readonly: boolean; block: boolean }>()
  /** Volume to node. */
  readonly attached = new Map<string, string>()
  /** Volume to how large it is in its storage, and how large for who uses it. */
  readonly storageSizes = new Map<string, bigint>()
  readonly nodeSizes = new Map<string, bigint>()
  /** What was done against the specification. */
  readonly offences: string[] = []
  /** What happens at the next calls of a name, in order. */
  readonly mishaps = new Map<string, Mishap[]>()
  /** What happens at every call that nothing else happens at. */
  always: Mishap | undefined
  /** The start of the machine that hosts see. */
  bootId = 'boot-1'
  capabilities = new Set(['stage', 'attach'])
  /** Paths that are mounted from elsewhere. */
  readonly foreign = new Set<string>()
  readonly pathStates = new Map<string, PathState>()
  readonly #busy = new Set<string>()
  /** Volumes with which a call goes on whose caller gave up, or may have. */
  readonly #stuck = new Set<string>()
  readonly #hanging = new Set<Gate>()
  readonly #lost = new Set<string>()
  /** Opened when it is there again. */
  #away: Gate | undefined

  fail(rpc: string, ...mishaps: (Mishap | PlugstreamError)[]): void {
    const all = mishaps.map((one) => (one instanceof PlugstreamError ? (): never => fail(one) : one))
    this.mishaps.set(rpc, [...(this.mishaps.get(rpc) ?? []), ...all])
  }

  /**
   * The next call of a name does nothing until it is told to go on. Its caller may give up; the plugin does not, and answers ABORTED to
   * whatever else comes for the volume.
   *
   * @param isDeaf its caller does not give up, or too late.
   * @returns how to tell it.
   */
  hang(rpc: string, isDeaf = false): () => void {
    const hanging = gate()
    this.#hanging.add(hanging)
    hanging.opened.catch(() => undefined) // nobody may have called
    this.fail(rpc, async ({ volumeId }, effect, signal) => {
      this.#stuck.add(volumeId)
      const done = hanging.opened.then(effect).finally(() => this.#stuck.delete(volumeId))
      await (isDeaf ? done : Promise.race([done, givenUp(signal)]))
    })
    return hanging.open
  }

  /** Whatever hangs goes on. */
  endHangs(): void {
    for (const hanging of this.#hanging) hanging.open()
    this.#hanging.clear()
  }

  /** Is killed: what hangs ends without an effect, and nothing is answered until it is back. What it has stays. */
  leave(): void {
    this.#away ??= gate()
    for (const hanging of this.#hanging) hanging.fail(rpcFailure('UNAVAILABLE', 'unknown'))
    this.#hanging.clear()
  }

  comeBack(): void {
    this.#away?.open()
    this.#away = undefined
  }

  /** Resolves when it is there. */
  async there(signal?: AbortSignal): Promise<void> {
    if (this.#away) await Promise.race([this.#away.opened, givenUp(signal)])
  }

  /** The file system of a volume dies where it is mounted, and is dead wherever it is published from there. */
  kill(volumeId: string): void {
    for (const [path, id] of this.staged) if (id === volumeId) this.pathStates.set(path, 'stale')
    for (const [path, { volumeId: id }] of this.published) if (id === volumeId) this.pathStates.set(path, 'stale')
  }

  /** A mount is lost, of which the plugin does not know: it confirms it until it has undone it. */
  lose(path: string): void {
    this.staged.delete(path)
    this.published.delete(path)
    this.pathStates.delete(path)
    this.#lost.add(path)
  }

  /** The machine is started anew: nothing is mounted any more. A plugin that keeps a record of its own does not know of it. */
  reboot(hasRecord = false): void {
    this.bootId += '+'
    for (const path of [...this.published.keys(), ...this.staged.keys()]) this.lose(path)
    if (!hasRecord) this.#lost.clear()
  }

  /** One that has what this one has, with its machine, and with which nothing is under way. */
  copy(): FakePlugin {
    const copy = new FakePlugin()
    copy.bootId = this.bootId
    copy.capabilities = new Set(this.capabilities)
    copy.offences.push(...this.offences)
    for (const [path, id] of this.staged) copy.staged.set(path, id)
    for (const [path, use] of this.published) copy.published.set(path, { ...use })
    for (const [id, node] of this.attached) copy.attached.set(id, node)
    for (const [id, size] of this.storageSizes) copy.storageSizes.set(id, size)
    for (const [id, size] of this.nodeSizes) copy.nodeSizes.set(id, size)
    for (const [path, state] of this.pathStates) copy.pathStates.set(path, state)
    for (const path of this.foreign) copy.foreign.add(path)
    for (const path of this.#lost) copy.#lost.add(path)
    return copy
  }

  /** Names of the calls that came, as in `Stage a`. */
  get names(): string[] {
    return this.calls.map(({ rpc }) => rpc)
  }

  readonly client = {
    nodeGetInfo: (_: unknown, options?: Options) =>
      this.#call('NodeGetInfo', {}, options, () => undefined).then(() => ({ nodeId: 'node-1' })),
    nodeStageVolume: (request: Request, options?: Options) => this.#stage(request, options),
    nodeUnstageVolume: (request: Request, options?: Options) => this.#unstage(request, options),
    nodePublishVolume: (request: Request, options?: Options) => this.#publish(request, options),
    nodeUnpublishVolume: (request: Request, options?: Options) => this.#unpublish(request, options),
    controllerPublishVolume: (request: Request, options?: Options) => this.#attach(request, options),
    controllerExpandVolume: async (request: Request, options?: Options) => {
      await this.#call('ControllerExpandVolume', request, options, () => this.#grow(this.storageSizes, request))
      return { capacityBytes: request.capacityRange?.requiredBytes, nodeExpansionRequired: true }
    },
    nodeExpandVolume: async (request: Request, options?: Options) => {
      await this.#call('NodeExpandVolume', request, options, () => {
        if (!this.published.has(request.volumePath ?? '')) this.offences.push(`it grows at ${request.volumePath}`)
        // Without its controller half it grows all by itself.
        if (!this.capabilities.has('attach')) this.#grow(this.storageSizes, request)
        if (!this.storageSizes.has(request.volumeId ?? '')) this.offences.push('it grows on the node alone')
        this.#grow(this.nodeSizes, request)
      })
      return {}
    },
    controllerGetCapabilities: async () => ({ names: [...this.capabilities], unknown: [] }),
    controllerUnpublishVolume: (request: Request, options?: Options) =>
      this.#call(
        'ControllerUnpublishVolume',
        request,
        options,
        () => void this.attached.delete(request.volumeId ?? ''),
      ),
  } as unknown as CsiClient

  readonly mounts = async (): Promise<readonly Mount[]> =>
    [...this.staged.keys(), ...this.published.keys(), ...this.foreign].map((path, id) => ({
      id: id + 1,
      parentId: 0,
      device: '0:1',
      root: '/',
      path,
      options: this.published.get(path)?.readonly ? ['ro'] : ['rw'],
      fsType: 'fake',
      source: this.foreign.has(path) ? 'elsewhere' : 'fake',
      superOptions: [],
    }))

  #grow(sizes: Map<string, bigint>, { volumeId = '', capacityRange }: Request): void {
    sizes.set(volumeId, capacityRange?.requiredBytes ?? 0n)
  }

  async #stage(request: Request, options?: Options): Promise<void> {
    if (!this.capabilities.has('stage')) throw unsupported('NodeStageVolume')
    const { volumeId = '', stagingTargetPath: path = '' } = request
    await this.#call('NodeStageVolume', request, options, () => {
      const other = [...this.staged].find(([at, id]) => id === volumeId && at !== path && sameNamespace(at, path))
      if (other) this.offences.push(`${volumeId} is staged twice`)
      if (this.#lost.has(path)) return
      this.staged.set(path, volumeId)
    })
  }

  async #unstage(request: Request, options?: Options): Promise<void> {
    if (!this.capabilities.has('stage')) throw unsupported('NodeUnstageVolume')
    const { volumeId = '', stagingTargetPath: path = '' } = request
    await this.#call('NodeUnstageVolume', request, options, () => {
      for (const [at, { volumeId: id }] of this.published)
        if (id === volumeId && sameNamespace(at, path)) this.offences.push(`${volumeId} is unstaged while at ${at}`)
      this.#lost.delete(path)
      this.staged.delete(path)
      this.pathStates.delete(path)
    })
  }

  async #publish(request: Request, options?: Options): Promise<void> {
    const { volumeId = '', targetPath = '', stagingTargetPath, readonly = false, volumeCapability } = request
    await this.#call('NodePublishVolume', request, options, () => {
      if (this.capabilities.has('stage') && this.staged.get(stagingTargetPath ?? '') !== volumeId)
        this.offences.push(`${volumeId} is published and not staged`)
      if (this.#lost.has(targetPath)) return
      this.published.set(targetPath, { volumeId, readonly, block: volumeCapability?.kind === 'block' })
      const from = this.pathStates.get(stagingTargetPath ?? '')
      if (from) this.pathStates.set(targetPath, from)
    })
  }

  async #unpublish(request: Request, options?: Options): Promise<void> {
    const { targetPath = '' } = request
    await this.#call('NodeUnpublishVolume', request, options, () => {
      this.published.delete(targetPath)
      this.#lost.delete(targetPath)
      this.pathStates.delete(targetPath)
    })
  }

  async #attach(request: Request, options?: Options): Promise<{ publishContext: Record<string, string> }> {
    if (!this.capabilities.has('attach')) throw unsupported('ControllerPublishVolume')
    const { volumeId = '', nodeId = '' } = request
    await this.#call('ControllerPublishVolume', request, options, () => void this.attached.set(volumeId, nodeId))
    return { publishContext: { device: `/dev/${volumeId}` } }
  }

  async #call(rpc: string, request: Request, options: Options | undefined, effect: () => void): Promise<void> {
    const { volumeId = '', targetPath, stagingTargetPath } = request
    const path = targetPath ?? stagingTargetPath
    const call: FakeCall = { rpc, volumeId, ...(path !== undefined && { path }), request: { ...request } }
    if (this.#away) throw rpcFailure('UNAVAILABLE', 'unknown')
    this.calls.push(call)
    if (this.#stuck.has(volumeId)) throw rpcFailure('ABORTED', 'unknown')
    if (volumeId !== '' && this.#busy.has(volumeId)) this.offences.push(`two calls for ${volumeId} at once`)
    this.#busy.add(volumeId)
    try {
      await Promise.resolve() // a call takes a turn at least
      const mishap = this.mishaps.get(rpc)?.shift() ?? this.always
      let isDone = false
      const once = (): void => {
        if (!isDone) effect()
        isDone = true
      }
      if (mishap) await mishap(call, once, options?.signal)
      once()
    } finally {
      this.#busy.delete(volumeId)
    }
  }
}

interface Options {
  signal?: AbortSignal
}

interface Request {
  volumeId?: string
  stagingTargetPath?: string
  targetPath?: string
  volumePath?: string
  capacityRange?: { requiredBytes?: bigint }
  nodeId?: string
  readonly?: boolean
  volumeCapability?: { kind: string }
}

/** What a fake host has. */
export interface FakeHost {
  readonly manager: VolumeManager
  readonly ports: VolumePorts
  readonly operations: Operations
  readonly reports: VolumeReports
  readonly events: VolumeEvent[]
  readonly problems: PlugstreamError[]
  /** What is stored, key to JSON text. */
  readonly records: Map<string, string>
  /** @param timeoutMs how long it waits for what is under way. Default: no limit. */
  close(timeoutMs?: number): Promise<void>
}

/** The roots of a plugin: where the host has its volumes, and where the plugin sees them. */
export const hostRoot = '/state/volumes/disk'

/** What a volume manager needs, over a fake plugin called `disk`. */
export function fakePorts(plugin: FakePlugin, records: Map<string, string>): VolumePorts {
  const info = (type: PluginType): PluginInfo => ({
    type,
    name: 'disk',
    allocId: 'a1',
    version: '1',
    provider: 'fake',
    connection: { socketPath: '/fake.sock' },
    options: { mountPoint: hostRoot, containerMountPoint: hostRoot },
    registeredAt: 0,
  })
  return {
    store: memoryStore(records),
    files: {
      expectsMounts: true,
      bootId: plugin.bootId,
      mounts: plugin.mounts,
      placeOf: async (_root, path) => path,
      makeDirectory: async () => undefined,
      isLink: async () => false,
      removeIfEmpty: () => undefined,
      look: async (path) => ({ state: plugin.pathStates.get(path) ?? 'directory', description: `looked at ${path}` }),
    },
    volumeRoot: () => hostRoot,
    fields: requestFields,
    isRegistered: (type) => type !== 'csi-controller' || plugin.capabilities.has('attach'),
    ready: async (type, _plugin, signal) => {
      await plugin.there(signal)
      return info(type)
    },
    client: () => plugin.client,
    isFull: () => undefined,
    checkAccess: () => undefined,
    check: () => undefined,
    secrets: async ({ secretsRef }) => ({ password: `of ${secretsRef}` }),
    now: () => 0,
  }
}

/** A volume manager over a fake plugin called `disk`; what `over` gives takes the place of a port. */
export async function fakeHost(
  plugin: FakePlugin,
  records = new Map<string, string>(),
  over: Partial<VolumePorts> = {},
): Promise<FakeHost> {
  const ports: VolumePorts = { ...fakePorts(plugin, records), ...over }
  const operations = new Operations()
  const events: VolumeEvent[] = []
  const problems: PlugstreamError[] = []
  const halves = new PluginHalves(ports, operations)
  const manager = await VolumeManager.open(ports, operations, halves, {
    event: (event) => events.push(event),
    problem: (problem) => problems.push(problem),
    changed: () => undefined,
  })
  const reports = new VolumeReports(ports, operations, halves, manager)
  const close = async (timeoutMs?: number): Promise<void> => {
    manager.close()
    await operations.close(timeoutMs)
  }
  return { manager, ports, operations, reports, events, problems, records, close }
}

/** Paths of the fake are `…/staging/<namespace>/…` and `…/per-alloc/<alloc>/<namespace>/…`. */
function sameNamespace(a: string, b: string): boolean {
  return namespaceOf(a) === namespaceOf(b)
}

function namespaceOf(path: string): string {
  const parts = path.slice(hostRoot.length + 1).split('/')
  return (parts[0] === 'staging' ? parts[1] : parts[2]) ?? ''
}

/** Rejects as a client does whose caller gives up. */
function givenUp(signal?: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const rejected = (): void => reject(signal?.reason as Error)
    if (signal?.aborted) rejected()
    signal?.addEventListener('abort', rejected, { once: true })
  })
}

function fail(failure: PlugstreamError): never {
  throw failure
}
