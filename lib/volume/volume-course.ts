import { attach, detach, type ControllerPlugin } from './attach-steps.js'
import { isExhausted } from './errors.js'
import type { HeldVolume } from './held-volume.js'
import type { Limits } from './limits.js'
import { publish, stage, unpublish, unstage, type NodePlugin } from './node-steps.js'
import { claimOf, withClaim, without, withoutClaim, type Claim } from './volume-record.js'

/** The halves of the plugin that has the volume. */
export interface VolumePlugin {
  node: NodePlugin
  /** Its controller half is on this host. */
  hasController: boolean
  /** Asked for where it is needed; waits until it is there. */
  controller: (limits: Limits) => Promise<ControllerPlugin>
  /** Told that it has no room for the volume on this node. */
  isFull: () => void
}

/**
 * The way of one volume: attached, staged once, published for each use; unpublished, unstaged after the last, detached. Each step is made
 * where it is not confirmed, and on record before it is made. Only one goes on for a volume at a time.
 */
export class VolumeCourse {
  readonly #volume: HeldVolume
  readonly #plugin: VolumePlugin
  readonly #isAttachedForOthers: (nodeId: string) => boolean

  /** @param isAttachedForOthers whether another namespace has it there: for its controller it is one volume. */
  constructor(volume: HeldVolume, plugin: VolumePlugin, isAttachedForOthers: (nodeId: string) => boolean) {
    this.#volume = volume
    this.#plugin = plugin
    this.#isAttachedForOthers = isAttachedForOthers
  }

  async up(claim: Claim, limits: Limits): Promise<void> {
    try {
      await this.#attach(limits)
      await this.#stage(limits)
      await publish(this.#plugin.node, this.#volume.record, claim, limits)
      this.#volume.published(claim)
    } catch (failure) {
      if (isExhausted(failure)) this.#plugin.isFull()
      throw failure
    }
  }

  /** Ends the use of a claim that was let go of. Once it was the last, the rest is to follow. */
  async down(claim: Claim, limits: Limits): Promise<void> {
    const volume = this.#volume
    await unpublish(this.#plugin.node, volume.record, claim.path, limits)
    volume.unpublished(claim)
    const rest = withoutClaim(volume.record, claim.path)
    if (rest.claims.length > 0) await volume.save(rest)
    else volume.put(rest) // saved together with what follows, or done again
  }

  /** Unstages and detaches what nobody holds. */
  async rest(limits: Limits): Promise<void> {
    const volume = this.#volume
    if (volume.isGone || volume.record.claims.length > 0) return
    const { stage: staged, attachedTo } = volume.record
    if (staged) {
      volume.staged = false
      await unstage(this.#plugin.node, volume.record, staged.path, limits)
      volume.put(without(volume.record, 'stage'))
    }
    if (attachedTo !== undefined) {
      volume.attached = false
      if (!this.#isAttachedForOthers(attachedTo))
        await detach(await this.#plugin.controller(limits), volume.record, attachedTo, limits)
    }
    volume.solved('')
    await volume.save(without(volume.record, 'stage', 'attachedTo', 'publishContext', 'growth'))
  }

  /** Makes what is dead anew: every use of it ends first, so that it can be staged again. */
  async revive(limits: Limits): Promise<void> {
    const volume = this.#volume
    const dead = volume.record.claims.filter((claim) => claim.held && volume.isStale(claim))
    await this.takeDown(dead, limits)
    for (const claim of dead) await this.up(claimOf(volume.record, claim.path) ?? claim, limits)
  }

  /** Ends uses that are on record and stay there. It is unstaged only with all of them: a use that is not confirmed may be there. */
  async takeDown(claims: readonly Claim[], limits: Limits): Promise<void> {
    const volume = this.#volume
    const { record } = volume
    for (const claim of claims) {
      volume.takenDown(claim) // whatever becomes of the call
      await unpublish(this.#plugin.node, record, claim.path, limits)
    }
    if (!record.stage || claims.length < record.claims.length) return
    volume.staged = false
    await unstage(this.#plugin.node, record, record.stage.path, limits)
  }

  async #attach(limits: Limits): Promise<void> {
    const volume = this.#volume
    const { attachedTo, claims } = volume.record
    const [first] = claims
    if (attachedTo === undefined || volume.attached || !first) return
    const { readonly: _ofUse, ...access } = volume.record.stage?.access ?? first.access
    const controller = await this.#plugin.controller(limits)
    const publishContext = await attach(controller, volume.record, attachedTo, access, limits)
    // Kept for later uses of the volume; a plugin that does not attach has none.
    volume.put(publishContext ? { ...volume.record, publishContext } : without(volume.record, 'attachedTo'))
    volume.attached = publishContext !== undefined
  }

  async #stage(limits: Limits): Promise<void> {
    const volume = this.#volume
    const { stage: place } = volume.record
    if (!place || volume.staged) return
    volume.staged = await stage(this.#plugin.node, volume.record, place, limits)
    if (!volume.staged) volume.put(without(volume.record, 'stage'))
  }
}

/** A claim that nobody holds any more, on record. */
export async function letGo(volume: HeldVolume, claim: Claim): Promise<Claim> {
  const free = { ...claim, held: false }
  await volume.save(withClaim(volume.record, free))
  return free
}
