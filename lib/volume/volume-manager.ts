import { dirname } from 'node:path'
import { volumeUndoMs } from '../defaults.js'
import { messageOf, PlugstreamError } from '../errors.js'
import type { StoreWrite } from '../store/state-store.js'
import { quarantinePrefix } from '../stored-record.js'
import { Again } from './again.js'
import { isMountError } from './errors.js'
import { grow } from './growth.js'
import { HeldVolume } from './held-volume.js'
import type { Limits } from './limits.js'
import { checkFree, checkNoLink, missing } from './node-steps.js'
import { Operations } from './operations.js'
import type { VolumePorts } from './ports.js'
import { takeMount, takeRef, takeUnmountRef, type TakenMount, type TakenRef, type TakenRequest } from './take-mount.js'
import { stageUsageOf } from './usage.js'
import { PluginHalves } from './plugin-halves.js'
import { letGo, VolumeCourse, type VolumePlugin } from './volume-course.js'
import { allocPath, stagingPath, stagingRoot, targetPath } from './volume-paths.js'
import { claimOf, decodeVolume, newRecord, volumeKey, volumePrefix, withClaim, type Claim } from './volume-record.js'
import type {
  MountedVolume,
  MountRequest,
  UnmountRef,
  VolumeCallOptions,
  VolumeEvent,
  VolumeRef,
  VolumeState,
} from './volume.js'

/** What the manager tells of besides what it answers. */
export interface VolumeListeners {
  event: (event: VolumeEvent) => void
  problem: (problem: PlugstreamError) => void
  /** Something in `list()` is another now. */
  changed: () => void
}

/**
 * The volumes of a host, and who holds them. What is held and what is being undone is on record before it is begun, and outlives the
 * host: after `open` every volume on record is uncertain until its plugin has confirmed it. What could not be undone is tried again for
 * as long as it takes, as soon as its plugin is back.
 */
export class VolumeManager {
  readonly #ports: VolumePorts
  readonly #tell: VolumeListeners
  readonly #held = new Map<string, HeldVolume>()
  /** Records that could not be read, by their keys. What takes the place of one keeps a copy of it. */
  readonly #unreadable = new Map<string, unknown>()
  readonly #operations: Operations
  readonly #halves: PluginHalves
  readonly #again = new Again((key) => this.#settle(key))

  private constructor(ports: VolumePorts, operations: Operations, halves: PluginHalves, tell: VolumeListeners) {
    this.#ports = ports
    this.#operations = operations
    this.#halves = halves
    this.#tell = tell
  }

  /** @throws ERR_STORE_READ where the store fails. A record that cannot be read is told as a problem, and stays where it is. */
  static async open(
    ports: VolumePorts,
    operations: Operations,
    halves: PluginHalves,
    tell: VolumeListeners,
  ): Promise<VolumeManager> {
    const manager = new VolumeManager(ports, operations, halves, tell)
    for await (const stored of ports.store.read(volumePrefix)) {
      try {
        const record = decodeVolume(stored)
        manager.#hold(volumeKey(record), record)
      } catch (failure) {
        manager.#unreadable.set(stored.key, 'value' in stored ? stored.value : stored.raw)
        tell.problem(PlugstreamError.from(failure, 'ERR_STORE_CORRUPT', `reading ${stored.key}`))
      }
    }
    return manager
  }

  /** What the host has of a volume. */
  find(ref: VolumeRef): HeldVolume | undefined {
    return this.#held.get(volumeKey(takeRef(ref)))
  }

  /** @throws ERR_VOLUME_BUSY where the host holds the volume, in whichever namespace. */
  mustBeFree({ plugin, volumeId }: VolumeRef): void {
    const held = [...this.#held.values()].find(({ record }) => record.plugin === plugin && record.volumeId === volumeId)
    if (!held) return
    const users = [...new Set(held.record.claims.map(({ allocId }) => allocId))].join(', ')
    throw new PlugstreamError(
      'ERR_VOLUME_BUSY',
      `${nameOf(held.record)} is held here${users && ` for ${users}`}: unmount it first`,
      { retryable: true },
    )
  }

  /** Every volume that the host holds, as it is now. */
  list(): VolumeState[] {
    return [...this.#held.values()].filter(({ isEmpty }) => !isEmpty).map(({ state }) => state)
  }

  /**
   * Mounts a volume for an alloc: claims it, attaches it where the plugin has that, stages it unless it is, and publishes it. What failed
   * half-way is undone before this rejects, or as soon as that can be. A mount that is there already is given back; one that is dead is
   * made anew.
   */
  async mount(request: MountRequest, options: VolumeCallOptions = {}): Promise<MountedVolume> {
    const wanted = takeMount(request, this.#ports.checkAccess)
    const path = await this.#operation(`mounting ${nameOf(wanted)}`, wanted, options, (limits) =>
      this.#mount(wanted, limits),
    )
    return this.#mounted(wanted, path)
  }

  /**
   * Ends a use of a volume; with the last one, the volume is unstaged and detached. One that there is not is no error. From when its turn
   * has come it goes on also where the caller gives up, and for as long as its plugin takes to come back.
   */
  async unmount(ref: UnmountRef, options: VolumeCallOptions = {}): Promise<void> {
    const wanted = takeUnmountRef(ref, this.#ports.checkAccess)
    await this.#operation(`unmounting ${nameOf(wanted)}`, wanted, options, (limits) => this.#unmount(wanted, limits))
  }

  /** What could not be done of a volume is done as soon as it can be. */
  settleLater({ record }: HeldVolume): void {
    this.#again.later(volumeKey(record))
  }

  /** A plugin is there, or there again: what waited for it goes on, and what it had is looked at. */
  pluginReady(plugin: string): void {
    for (const [key, { record }] of this.#held) if (record.plugin === plugin) this.#again.now(key)
  }

  /** Begins nothing any more. Whatever is on record goes on when a host is opened again. */
  close(): void {
    this.#again.close()
  }

  /** A turn of the volume, for as long as the caller has time. */
  #operation<T>(
    doing: string,
    { plugin, volumeId: id }: TakenRef,
    options: VolumeCallOptions,
    work: (limits: Limits) => Promise<T>,
  ): Promise<T> {
    return this.#operations.inTurn(doing, { plugin, id }, options, work)
  }

  async #mount(wanted: TakenRequest, limits: Limits): Promise<string> {
    const root = await this.#halves.root(wanted.plugin, limits)
    const key = volumeKey(wanted)
    const volume = this.#held.get(key)
    const path = targetPath(volume?.record.root ?? root, wanted)
    const known = claimOf(volume?.record, path)
    if (
      volume &&
      known?.held &&
      volume.isPublished(known) &&
      !volume.isStale(known) &&
      !(await this.#isLost(volume, known))
    ) {
      await volume.resave()
      return path
    }
    return this.#halves.with({ ...volume?.record, ...wanted }, limits, async (plugin) => {
      await plugin.node.secrets('NodePublishVolume', limits) // there, before anything is done
      if (volume) await this.#recover(volume, this.#course(volume, plugin), limits)
      const record = await this.#planned(wanted, root, limits)
      if (!known) await checkFree(plugin.node, record.root, path)
      const claim: Claim = known ? { ...known, held: true } : claimFor(wanted, path)
      try {
        // What is there from before the first call is none of the plugin's.
        if (record.stage && !volume?.record.stage) await checkNoLink(plugin.node, record.stage.path)
        limits.signal.throwIfAborted() // no claim for who has given up
        await this.#claim(withClaim(record, claim), claim, plugin, limits)
        return path
      } catch (failure) {
        if (!claimOf(this.#held.get(key)?.record, path)) this.#prune(record.root, claim)
        throw failure
      }
    })
  }

  /** On record, and then true; or undone. */
  async #claim(record: HeldVolume['record'], claim: Claim, plugin: VolumePlugin, limits: Limits): Promise<void> {
    const key = volumeKey(record)
    const { allocId, path } = claim
    const held = this.#held.get(key) ?? this.#hold(key, newRecord(record, record.root))
    const wasHeld = claimOf(held.record, path)?.held ?? false
    const about = { ...record, allocId }
    const course = this.#course(held, plugin)
    held.wanted(path, true)
    try {
      await held.save(record)
      if (held.isStale(claim)) await course.revive(limits)
      else await course.up(claim, limits)
      limits.finish()
      this.#told('mounted', about, `mounted at ${path}`)
    } catch (failure) {
      this.#told('failed', about, messageOf(failure))
      if (wasHeld) this.#stays(key, claim, failure)
      else await this.#undo(held, course, claim)
      throw failure
    } finally {
      held.wanted(path, false)
      this.#forgetIfGone(key)
    }
  }

  /** What goes on record before the first call. @throws ERR_VOLUME_BUSY where the volume is staged for another kind of use. */
  async #planned(wanted: TakenRequest, root: string, limits: Limits) {
    const volume = this.#held.get(volumeKey(wanted))
    const record = volume?.record ?? newRecord(wanted, root)
    const { readonly: _ofUse, ...access } = wanted.access
    const { stage = { access, path: stagingPath(record.root, wanted) } } = record
    if (stageUsageOf(stage.access) !== stageUsageOf(access))
      throw new PlugstreamError(
        'ERR_VOLUME_BUSY',
        `${nameOf(wanted)} is staged for ${stageUsageOf(stage.access)}, and cannot be for ${stageUsageOf(access)} as well`,
        { retryable: true },
      )
    const { secretsRef = record.secretsRef, volumeContext = record.volumeContext, publishContext } = wanted
    const isOurs = publishContext === undefined && !volume?.isConfirmed && this.#isUnattached(record)
    const attachedTo = isOurs ? await this.#nodeId(wanted.plugin, limits) : undefined
    // One whose plugin does not stage is told to be staged no more as soon as that is known.
    const isNew = record.claims.length === 0
    const { bootId } = this.#ports.files
    return {
      ...record,
      ...(isNew && bootId !== undefined && { bootId }),
      ...(secretsRef !== undefined && { secretsRef }),
      ...(volumeContext !== undefined && { volumeContext }),
      ...(publishContext !== undefined && { publishContext }),
      ...(attachedTo !== undefined && { attachedTo }),
      ...(isNew && { stage }),
    }
  }

  /** Nobody has attached it, as far as is known here, and the host can. */
  #isUnattached({ plugin, attachedTo, publishContext }: HeldVolume['record']): boolean {
    return attachedTo === undefined && publishContext === undefined && this.#halves.hasController(plugin)
  }

  async #nodeId(plugin: string, limits: Limits): Promise<string> {
    limits.doing = 'NodeGetInfo'
    return (await this.#ports.client('csi-node', plugin).nodeGetInfo({}, limits.call)).nodeId
  }

  /** What was held before stays held, whatever this time became of it: there may be a task that uses it. */
  #stays(key: string, claim: Claim, failure: unknown): void {
    const volume = this.#held.get(key)
    if (volume?.isPublished(claim) && !volume.isStale(claim)) return // too late for its caller, and there
    volume?.failed(claim.path, failure)
    this.#again.later(key)
  }

  /** Takes back a mount that failed. Where that fails too, it is done as soon as it can be. */
  async #undo(volume: HeldVolume, course: VolumeCourse, claim: Claim): Promise<void> {
    const key = volumeKey(volume.record)
    if (claimOf(volume.record, claim.path) === undefined) {
      this.#again.later(key)
      return
    } // not even on record, as far as is known
    try {
      const free = { ...claim, held: false }
      volume.put(withClaim(volume.record, free)) // also where the store fails, or it would be made after all
      volume.unpublished(free)
      await volume.resave()
      if (this.#operations.isClosed) return // done when a host is opened again
      await this.#operations.within('undoing a mount', { timeoutMs: volumeUndoMs }, (limits) =>
        course.down(free, limits).then(() => course.rest(limits)),
      )
    } catch (failure) {
      volume.failed(claim.path, failure)
      this.#again.later(key)
    }
  }

  async #unmount(wanted: TakenMount & { path?: string }, limits: Limits): Promise<void> {
    const key = volumeKey(wanted)
    const volume = this.#held.get(key)
    if (!volume) return
    const { allocId, path = targetPath(volume.record.root, wanted) } = wanted
    const there = claimOf(volume.record, path)
    const claim = there?.allocId === allocId ? there : undefined
    if (!claim && volume.record.claims.length > 0) return volume.resave()
    let free = claim
    try {
      if (claim?.held) free = await letGo(volume, claim)
      await this.#halves.with(volume.record, limits, async (plugin) => {
        const course = this.#course(volume, plugin)
        if (free) await this.#down(volume, course, free, limits)
        await course.rest(limits)
      })
    } catch (failure) {
      volume.failed(free?.path ?? '', failure)
      this.#again.later(key)
      throw failure
    } finally {
      this.#forgetIfGone(key)
    }
  }

  async #down(volume: HeldVolume, course: VolumeCourse, claim: Claim, limits: Limits): Promise<void> {
    const { record } = volume
    await course.down(claim, limits)
    this.#told('unmounted', { ...record, allocId: claim.allocId }, `unmounted from ${claim.path}`)
    this.#prune(record.root, claim)
  }

  /** Brings a volume to where its record wants it. @throws the first of what failed, after everything was tried. */
  #settle(key: string): Promise<void> {
    const volume = this.#held.get(key)
    if (!volume) return Promise.resolve()
    return this.#operation('settling', volume.record, {}, (limits) => this.#settleWithin(key, limits))
  }

  async #settleWithin(key: string, limits: Limits): Promise<void> {
    const volume = this.#held.get(key)
    if (!volume) return
    let failed: Error | undefined
    const attempt = async (path: string, work: () => Promise<unknown>): Promise<void> => {
      try {
        await work()
      } catch (failure) {
        failed ??= failure as Error
        volume.failed(path, failure)
      }
    }
    await attempt('', () =>
      this.#halves.with(volume.record, limits, async (plugin) => {
        const course = this.#course(volume, plugin)
        await this.#recover(volume, course, limits)
        await volume.resave()
        for (const claim of volume.record.claims) {
          const { path } = claim
          await attempt(path, async () => {
            if (!claim.held) return this.#down(volume, course, claim, limits)
            if (!volume.isPublished(claim)) await this.#keep(volume, course, claim, limits)
            else if (await this.#isLost(volume, claim)) return // nothing to look at
            await this.#look(volume, claim, limits)
          })
        }
        await course.rest(limits)
        volume.solved('')
        await attempt('', () => this.#grow(volume, plugin, limits))
      }),
    )
    this.#forgetIfGone(key)
    if (failed) throw failed
  }

  /** Goes on with a growth that nobody knows the end of. */
  async #grow(volume: HeldVolume, plugin: VolumePlugin, limits: Limits): Promise<void> {
    if (!volume.record.growth) return
    const of = { ...volume.record, ...volume.record.growth }
    try {
      await grow(volume, plugin, (rpc) => this.#halves.secrets(of, rpc, limits), limits)
      this.#told('done', of, 'grown, as it was to be')
    } catch (failure) {
      this.#told('failed', of, messageOf(failure))
      throw failure
    } finally {
      await volume.resave()
    }
  }

  /**
   * Where the machine was started anew, nothing that is on record is there any more, and a plugin that keeps a record of its own may think
   * that it is: all of it is undone before anything is made anew.
   */
  async #recover(volume: HeldVolume, course: VolumeCourse, limits: Limits): Promise<void> {
    const { bootId } = this.#ports.files
    const { bootId: recorded = bootId, claims } = volume.record
    if (recorded === bootId || bootId === undefined) return
    await course.takeDown(claims, limits)
    await volume.save({ ...volume.record, bootId })
  }

  async #keep(volume: HeldVolume, course: VolumeCourse, claim: Claim, limits: Limits): Promise<void> {
    try {
      if (volume.isStale(claim)) await course.revive(limits)
      else await this.#up(volume, course, claim, limits)
    } catch (failure) {
      if (!isMountError(failure) || volume.isStale(claim)) throw failure
      // The plugin thinks that it is there, and it is not.
      volume.stale(claim, messageOf(failure))
      await course.revive(limits)
    }
    this.#told('kept', { ...volume.record, allocId: claim.allocId }, `confirmed at ${claim.path}`)
  }

  /** Where it was mounted before its controller was there, it was taken to be attached by somebody else: it may not have been. */
  async #up(volume: HeldVolume, course: VolumeCourse, claim: Claim, limits: Limits): Promise<void> {
    try {
      await course.up(claim, limits)
    } catch (failure) {
      limits.signal.throwIfAborted()
      if (isMountError(failure) || volume.isConfirmed || !this.#isUnattached(volume.record)) throw failure
      const attachedTo = await this.#nodeId(volume.record.plugin, limits)
      await volume.save({ ...volume.record, attachedTo })
      await course.up(claim, limits)
    }
  }

  /** The uses of a volume that are mounted no more, as somebody else has unmounted them. */
  async lookForLost(volume: HeldVolume): Promise<Claim[]> {
    const lost: Claim[] = []
    for (const claim of volume.record.claims) if (await this.#isLost(volume, claim)) lost.push(claim)
    return lost
  }

  /** Whether a use that was mounted is no more. It is dead then, and to be made anew. */
  async #isLost(volume: HeldVolume, claim: Claim): Promise<boolean> {
    if (!claim.held || !volume.isPublished(claim)) return false
    const problem = await missing(this.#ports.files, volume.record.root, claim)
    if (problem !== undefined) this.#died(volume, claim, problem)
    return problem !== undefined
  }

  #died(volume: HeldVolume, claim: Claim, problem: string): void {
    if (!volume.isStale(claim))
      this.#told('stale', { ...volume.record, allocId: claim.allocId }, `${claim.path}: ${problem}`)
    volume.stale(claim, problem)
  }

  /** Whether a mount is still alive. */
  async #look(volume: HeldVolume, claim: Claim, limits: Limits): Promise<void> {
    if (claim.access.kind === 'block') return
    const { state, description } = await this.#ports.files.look(claim.path, limits.signal)
    if (state !== 'stale' && state !== 'hung') volume.alive(claim)
    else this.#died(volume, claim, description)
  }

  #course(volume: HeldVolume, plugin: VolumePlugin): VolumeCourse {
    const { record: of } = volume
    return new VolumeCourse(volume, plugin, (nodeId) =>
      [...this.#held.values()].some(
        (other) =>
          other !== volume &&
          other.record.plugin === of.plugin &&
          other.record.volumeId === of.volumeId &&
          other.record.attachedTo === nodeId,
      ),
    )
  }

  /** Removes the directories of an alloc in which nothing is to be mounted any more: from that of a use up to its own. */
  #prune(root: string, { allocId, path }: Claim): void {
    const top = allocPath(root, allocId)
    for (let at = dirname(path); at.startsWith(top); at = dirname(at)) {
      for (const { record } of this.#held.values())
        if (record.claims.some((claim) => claim.path.startsWith(`${at}/`))) return
      this.#ports.files.removeIfEmpty(at)
    }
  }

  #hold(key: string, record: HeldVolume['record']): HeldVolume {
    const aside: readonly StoreWrite[] = this.#unreadable.has(key)
      ? [{ kind: 'put', key: quarantinePrefix + key, value: this.#unreadable.get(key) }]
      : []
    const volume = new HeldVolume(record, this.#ports, this.#tell.changed, aside)
    this.#held.set(key, volume)
    return volume
  }

  #forgetIfGone(key: string): void {
    const volume = this.#held.get(key)
    if (!volume?.isGone) return
    this.#held.delete(key)
    const { root, namespace } = volume.record
    const isNeeded = [...this.#held.values()].some(
      ({ record: other }) => other.root === root && other.namespace === namespace,
    )
    if (!isNeeded) this.#ports.files.removeIfEmpty(stagingRoot(root, namespace))
    this.#tell.changed()
  }

  #told(kind: VolumeEvent['kind'], about: TakenRef & { allocId?: string }, message: string): void {
    const { plugin, namespace, volumeId, allocId } = about
    const of = allocId === undefined ? {} : { allocId }
    this.#tell.event({ kind, plugin, namespace, volumeId, ...of, message, at: this.#ports.now() })
  }

  #mounted(mount: TakenMount, path: string): MountedVolume {
    const { plugin, namespace, volumeId, allocId } = mount
    const unmount = (options?: VolumeCallOptions): Promise<void> => this.unmount(mount, options)
    return { path, plugin, namespace, volumeId, allocId, unmount, [Symbol.asyncDispose]: () => unmount() }
  }
}

/** For people. */
function nameOf({ plugin, volumeId }: TakenRef): string {
  return `volume ${JSON.stringify(volumeId)} of plugin ${JSON.stringify(plugin)}`
}

function claimFor({ allocId, mountName, access }: TakenMount, path: string): Claim {
  return { allocId, ...(mountName !== undefined && { mountName }), access, path, held: true }
}
