import { messageOf, PlugstreamError } from '../errors.js'
import { copied, takeOptions } from '../options.js'
import { Again } from './again.js'
import type { ControllerAnswer, ControllerCall, ControllerRequest } from './controller-call.js'
import { isExhausted, isNotFound, isUnknown } from './errors.js'
import type { Limits } from './limits.js'
import type { Operations } from './operations.js'
import { callKey, callPrefix, decodeCall, encodeCall, type PendingCall } from './pending-call.js'
import type { VolumePorts } from './ports.js'
import { readyPlugin } from './ready-plugin.js'
import { secretsOf } from './secrets.js'
import { name, secretsByName, takeVolumeId } from './take-mount.js'
import type { VolumeCallOptions, VolumeEvent, VolumeRef } from './volume.js'

/** What ids are called in requests; what a thing that is made is called, where it has none yet. */
const idFields = ['volumeId', 'snapshotId', 'groupSnapshotId', 'sourceVolumeId'] as const

/** What would pull a volume away from under those who use it. */
const takesAway = new Set<ControllerCall>(['deleteVolume', 'controllerUnpublishVolume'])

/** What makes the things that a call deletes. */
const makes = new Map<ControllerCall, ControllerCall>([
  ['deleteVolume', 'createVolume'],
  ['deleteSnapshot', 'createSnapshot'],
  ['deleteVolumeGroupSnapshot', 'createVolumeGroupSnapshot'],
])

/** What there is not is deleted. Drivers say NOT_FOUND to that, in the place of the OK that the specification has. */
const deletes = new Set<ControllerCall>(['deleteVolume', 'deleteSnapshot', 'deleteVolumeGroupSnapshot'])

/**
 * Calls that change something, through the controller half of a plugin. A call is on record before it is sent, and until it is known what
 * became of it: one that nobody knows that of is made again, as CSI has it, when its plugin is there, also after the host was closed or
 * killed meanwhile.
 */
export class ControllerCalls {
  readonly #ports: VolumePorts
  readonly #operations: Operations
  readonly #mustBeFree: (ref: VolumeRef) => void
  readonly #event: (event: VolumeEvent) => void
  readonly #pending = new Map<string, PendingCall>()
  /** The keys of those that their caller has heard the end of, or is no more. */
  readonly #left = new Set<string>()
  readonly #again = new Again((key) => this.#settle(key))

  private constructor(
    ports: VolumePorts,
    operations: Operations,
    mustBeFree: (ref: VolumeRef) => void,
    event: (event: VolumeEvent) => void,
  ) {
    this.#ports = ports
    this.#operations = operations
    this.#mustBeFree = mustBeFree
    this.#event = event
  }

  /**
   * @param mustBeFree fails where a volume is in use.
   * @throws ERR_STORE_READ where the store fails. A record that cannot be read is told, and stays where it is.
   */
  static async open(
    ports: VolumePorts,
    operations: Operations,
    mustBeFree: (ref: VolumeRef) => void,
    tell: { event: (event: VolumeEvent) => void; problem: (problem: PlugstreamError) => void },
  ): Promise<ControllerCalls> {
    const calls = new ControllerCalls(ports, operations, mustBeFree, tell.event)
    for await (const stored of ports.store.read(callPrefix)) {
      try {
        calls.#pending.set(stored.key, decodeCall(stored))
        calls.#left.add(stored.key)
      } catch (failure) {
        tell.problem(PlugstreamError.from(failure, 'ERR_STORE_CORRUPT', `reading ${stored.key}`))
      }
    }
    return calls
  }

  async make<Call extends ControllerCall>(
    call: Call,
    given: ControllerRequest<Call>,
    options: VolumeCallOptions = {},
  ): Promise<ControllerAnswer<Call>> {
    const pending = take(call, given, this.#ports)
    const { plugin, id } = pending
    const doing = `${call} of ${JSON.stringify(id)} with plugin ${JSON.stringify(plugin)}`
    const answer = await this.#operations.inTurn(doing, pending, options, (limits) => {
      if (takesAway.has(call)) this.#mustBeFree({ plugin, volumeId: id })
      return this.#call(pending, limits, () => this.#save(pending))
    })
    return answer as ControllerAnswer<Call>
  }

  /** A plugin is there, or there again: what it was asked for and nobody knows the end of is asked for again. */
  pluginReady(plugin: string): void {
    for (const [key, pending] of this.#pending) if (pending.plugin === plugin) this.#again.now(key)
  }

  close(): void {
    this.#again.close()
  }

  /** Makes a call, and forgets it as soon as it is known what became of it. */
  async #call(pending: PendingCall, limits: Limits, before: () => Promise<unknown>): Promise<unknown> {
    const { plugin, call, request, id } = pending
    await readyPlugin(this.#ports, 'csi-controller', plugin, limits)
    return this.#operations.inPlace(plugin, limits, async () => {
      const secrets = await this.#secretsOf(pending, limits)
      await before()
      const method = this.#ports.client('csi-controller', plugin)[call] as (...args: unknown[]) => Promise<unknown>
      try {
        await readyPlugin(this.#ports, 'csi-controller', plugin, limits) // it may have gone meanwhile
        limits.doing = call
        const answered = method({ ...request, ...secrets }, limits.call)
        const answer = await (deletes.has(call) ? answered.catch(noneIsGone) : answered)
        await this.#forget(pending)
        this.#told('done', pending, `${call} of ${id}: done`)
        return answer
      } catch (failure) {
        if (isUnknown(failure)) this.#leave(callKey(pending))
        else await this.#forget(pending)
        if (call === 'controllerPublishVolume' && isExhausted(failure)) this.#ports.isFull(plugin)
        this.#told('failed', pending, messageOf(failure))
        throw failure
      }
    })
  }

  async #settle(key: string): Promise<void> {
    const pending = this.#pending.get(key)
    if (!pending) return this.#erase(key)
    const again = this.#operations.inTurn(`making ${pending.call} again`, pending, {}, async (limits) => {
      // Another call about the same may have taken its place since.
      const latest = this.#pending.get(key)
      if (latest && !(await this.#isOutdated(latest))) await this.#call(latest, limits, () => Promise.resolve())
    })
    await again.catch((failure: unknown) => {
      if (this.#pending.has(key)) throw failure
    })
  }

  /** A volume that is in use again, since somebody mounted it after the call, is not taken away from there. */
  async #isOutdated(pending: PendingCall): Promise<boolean> {
    const { plugin, call, id } = pending
    if (!takesAway.has(call)) return false
    try {
      this.#mustBeFree({ plugin, volumeId: id })
      return false
    } catch (failure) {
      await this.#forget(pending)
      this.#told('failed', pending, `${call} is not made again: ${messageOf(failure)}`)
      return true
    }
  }

  /** Nobody knows what became of a call, and nobody waits for it. */
  #leave(key: string): void {
    this.#left.add(key)
    this.#again.later(key)
  }

  /**
   * What a delete may be about: who asks for it by the id found it in a list, and the call that was to make it has a name only. To make
   * that again could bring back what is deleted; who still wants it can ask for it again.
   */
  #perhapsUndoneBy({ plugin, call }: PendingCall): [key: string, PendingCall][] {
    const made = makes.get(call)
    return [...this.#pending].filter(([key, one]) => this.#left.has(key) && one.plugin === plugin && one.call === made)
  }

  /** The latest call about a thing is the one that counts: it follows on the one before, or undoes it. */
  async #save(pending: PendingCall): Promise<void> {
    const key = callKey(pending)
    // What is asked for all nodes and what is asked for one take each other's place.
    const isPart = (one: string, other: string): boolean => one.startsWith(`${other}/`)
    const undone = this.#perhapsUndoneBy(pending)
    const others = [...this.#pending.keys()].filter((other) => isPart(other, key) || isPart(key, other))
    const before = [...others, ...undone.map(([other]) => other)]
    const erased = before.map((other) => ({ kind: 'delete', key: other }) as const)
    await this.#ports.store.save([...erased, { kind: 'put', key, value: encodeCall(pending) }])
    for (const other of before) this.#pending.delete(other)
    for (const [, one] of undone)
      this.#told(
        'failed',
        one,
        `${one.call} of ${one.id} is not made again: it may have made ${pending.id}, which is deleted`,
      )
    this.#pending.set(key, pending)
    this.#left.delete(key)
  }

  /** What became of a call is known, also where the store fails: then its record is removed as soon as it can be. */
  async #forget(pending: PendingCall): Promise<void> {
    const key = callKey(pending)
    this.#pending.delete(key)
    await this.#erase(key).catch(() => this.#again.later(key))
  }

  #erase(key: string): Promise<void> {
    return this.#ports.store.save([{ kind: 'delete', key }])
  }

  #secretsOf({ plugin, call, secretsRef, request }: PendingCall, limits: Limits): Promise<object> {
    const { volumeId } = request as { volumeId?: string }
    const rpc = `${call.charAt(0).toUpperCase()}${call.slice(1)}`
    return secretsOf(this.#ports, { secretsRef, rpc, plugin, ...(volumeId !== undefined && { volumeId }) }, limits)
  }

  #told(kind: 'done' | 'failed', { plugin, call, id }: PendingCall, message: string): void {
    this.#event({ kind, plugin, volumeId: id, call, message, at: this.#ports.now() })
  }
}

/** The answer where there is nothing to delete. */
function noneIsGone(failure: unknown): object {
  if (isNotFound(failure)) return {}
  throw failure
}

/** A copy: its giver may use the object again. @throws ERR_OPTION_INVALID naming the field. */
function take(
  call: ControllerCall,
  given: ControllerRequest<ControllerCall>,
  { fields: fieldsOf, check }: Pick<VolumePorts, 'fields' | 'check'>,
): PendingCall {
  const known = ['plugin', ...fieldsOf(call).filter((field) => field !== 'secrets'), 'secretsRef']
  const { plugin, secretsRef, ...asked } = takeOptions('request', given, known, { instead: secretsByName })
  const fields = asked as Partial<Record<string, unknown>>
  for (const field of idFields) if (fields[field] !== undefined) takeVolumeId(field, fields[field])
  check(call, asked)
  const request = Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, copied(field, value)]))
  const ids = ['name', ...idFields].map((field) => fields[field])
  return {
    plugin: name('plugin', plugin),
    call,
    id: ids.find((id) => typeof id === 'string') ?? '',
    request,
    ...(secretsRef !== undefined && { secretsRef: name('secretsRef', secretsRef) }),
  }
}
