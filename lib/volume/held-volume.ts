import { messageOf } from '../errors.js'
import type { StoreWrite } from '../store/state-store.js'
import type { VolumePorts } from './ports.js'
import { shownAccess } from './usage.js'
import type { ClaimPhase, VolumeObstacle, VolumeState } from './volume.js'
import { claimOf, encodeVolume, volumeKey, type Claim, type VolumeRecord } from './volume-record.js'

/**
 * A volume that this host holds: its record, and what of it was confirmed by the plugin since the host was opened. What is on record and
 * not confirmed is uncertain: it may be there, or half there, or not at all.
 */
export class HeldVolume {
  #record: VolumeRecord
  #aside: readonly StoreWrite[]
  readonly #store: VolumePorts['store']
  readonly #changed: () => void
  /** Confirmed by the plugin. */
  attached = false
  staged = false
  #isSaved = true
  readonly #published = new Set<string>()
  readonly #stale = new Set<string>()
  /** Called for by somebody who still waits for it, and so on its way rather than uncertain. */
  readonly #wanted = new Set<string>()
  /** By path; what is about the volume itself under the empty one. */
  readonly #problems = new Map<string, VolumeObstacle>()
  readonly #now: () => number

  /** @param aside what has to be saved with its first record: a copy of the one that this takes the place of. */
  constructor(
    record: VolumeRecord,
    { store, now }: Pick<VolumePorts, 'store' | 'now'>,
    changed: () => void,
    aside: readonly StoreWrite[] = [],
  ) {
    this.#aside = aside
    this.#record = record
    this.#store = store
    this.#now = now
    this.#changed = changed
  }

  /** As it was last saved. */
  get record(): VolumeRecord {
    return this.#record
  }

  /** Saved, then true. A record without anything in it is removed. @throws ERR_STORE_WRITE. */
  async save(record: VolumeRecord): Promise<void> {
    const key = volumeKey(record)
    const write: StoreWrite = isEmpty(record)
      ? { kind: 'delete', key }
      : { kind: 'put', key, value: encodeVolume(record) }
    this.#isSaved = false // a store that fails may keep it all the same
    await this.#store.save([...this.#aside, write])
    this.#aside = []
    this.put(record)
    this.#isSaved = true
  }

  /** Saved again where it is not sure that what is on record is so. @throws ERR_STORE_WRITE. */
  async resave(): Promise<void> {
    if (!this.#isSaved) await this.save(this.#record)
  }

  /** True now, and saved with the next change: nothing is lost where it is not. */
  put(record: VolumeRecord): void {
    this.#record = record
    this.#isSaved = false
    this.#changed()
  }

  /** Nothing is there of it, yet or any more. */
  get isEmpty(): boolean {
    return isEmpty(this.#record)
  }

  /** Nothing is left of it, on record either. */
  get isGone(): boolean {
    return this.#isSaved && isEmpty(this.#record)
  }

  /** Everything on record is confirmed, and nothing waits to be undone. */
  get isSettled(): boolean {
    const { claims } = this.#record
    return (
      claims.length > 0 && claims.every((claim) => claim.held && this.isPublished(claim)) && !this.#problems.has('')
    )
  }

  /** Something of it is there, for sure. */
  get isConfirmed(): boolean {
    return this.attached || this.staged || this.#published.size > 0
  }

  isPublished({ path }: Claim): boolean {
    return this.#published.has(path)
  }

  /** Dead, whether it is still there or was taken down, and to be made anew. */
  isStale({ path }: Claim): boolean {
    return this.#stale.has(path)
  }

  published({ path }: Claim): void {
    this.#published.add(path)
    this.#stale.delete(path)
    this.#problems.delete(path)
    this.#changed()
  }

  stale({ path }: Claim, problem: string): void {
    this.#stale.add(path)
    this.failed(path, problem)
  }

  /** It answers, whatever was thought of it. */
  alive({ path }: Claim): void {
    this.#stale.delete(path)
    this.solved(path)
  }

  /** Not known to be there any more, and to be there again. What was dead stays so until it has been made anew. */
  takenDown({ path }: Claim): void {
    this.#published.delete(path)
    this.#changed()
  }

  /** What is known of a use is known no more: it is being undone, or was. */
  unpublished({ path }: Pick<Claim, 'path'>): void {
    this.#published.delete(path)
    this.#stale.delete(path)
    this.#problems.delete(path)
    this.#changed()
  }

  wanted(path: string, isWanted: boolean): void {
    if (isWanted) this.#wanted.add(path)
    else this.#wanted.delete(path)
    this.#changed()
  }

  /** What stands in the way of the use at a path, or else of the volume. */
  failed(path: string, problem: unknown): void {
    const at = claimOf(this.#record, path) ? path : ''
    const { failingSince = this.#now(), attempts = 0 } = this.#problems.get(at) ?? {}
    const message = typeof problem === 'string' ? problem : messageOf(problem)
    this.#problems.set(at, { problem: message, failingSince, attempts: attempts + 1 })
    this.#changed()
  }

  solved(path: string): void {
    if (this.#problems.delete(path)) this.#changed()
  }

  get state(): VolumeState {
    const { plugin, namespace, volumeId, attachedTo, claims } = this.#record
    return {
      plugin,
      namespace,
      volumeId,
      staged: this.staged,
      ...(attachedTo !== undefined && this.attached && { attachedTo }),
      claims: claims.map((claim) => {
        const { allocId, mountName, access, path } = claim
        return {
          allocId,
          ...(mountName !== undefined && { mountName }),
          access: shownAccess(access),
          path,
          phase: this.#phaseOf(claim),
          ...this.#problems.get(path),
        }
      }),
      ...this.#problems.get(''),
    }
  }

  #phaseOf(claim: Claim): ClaimPhase {
    if (!claim.held) return 'unmounting'
    if (this.isStale(claim)) return 'stale'
    if (this.isPublished(claim)) return 'mounted'
    return this.#wanted.has(claim.path) ? 'mounting' : 'uncertain'
  }
}

function isEmpty({ claims, stage, attachedTo }: VolumeRecord): boolean {
  return claims.length === 0 && stage === undefined && attachedTo === undefined
}
