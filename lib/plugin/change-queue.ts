import { messageOf, PlugstreamError } from '../errors.js'
import type { StoreWrite } from '../store/state-store.js'
import { refOf, type PluginRef, type RegistryEvent } from './plugin.js'
import { encodeRecord } from './record.js'
import type { RegistryState, Step } from './registry-state.js'
import { Draft } from './registry-step.js'
import type { Sequence } from './sequence.js'
import type { ValidChange } from './validate.js'

/** A change that waits for its turn. One of the two is called, once: `done` when its event was published. */
export interface QueuedChange {
  readonly change: ValidChange
  done(step: Step, event: RegistryEvent | undefined): void
  refused(error: PlugstreamError): void
}

export interface QueuePorts {
  /** Saves a batch and calls back once, in this turn or later, with what was thrown if it was not saved. */
  save(batch: readonly StoreWrite[], done: (failure?: Failure) => void): void
  /** Tells everybody. Does not throw. */
  publish(event: RegistryEvent): void
  /** Unix ms. */
  now(): number
}

export interface Failure {
  readonly thrown: unknown
}

/** One save, and what follows from either end of it. */
interface Attempt {
  /** The changes it is made for; none where it is a repair. */
  readonly job: readonly QueuedChange[]
  readonly writes: readonly StoreWrite[]
  saved(): void
  failed(failure: Failure): void
  outcome?: { failure: Failure | undefined }
}

/** Changes saved together at most: a flush to disk is cheap for so many, and the first of them does not wait long for the last. */
const batchCount = 1_000

/**
 * Applies changes one after the other: thought through, saved, committed, published, answered. What waits while a save is in flight
 * is saved together; where that fails, one by one, each on its own, unless the store says that somebody else holds the whole of it.
 *
 * Invariants: at most one save is in flight. The state changes and events are published in one place, `#run`, which is never entered
 * from within itself, and not while the queue is held. A record which a failed save may have left in doubt is written once more, as
 * the state has it, after the next save that succeeds.
 */
export class ChangeQueue {
  readonly #state: RegistryState
  readonly #sequence: Sequence
  readonly #ports: QueuePorts
  readonly #waiting: QueuedChange[] = []
  /** What is left of a batch that failed; goes before what waits. */
  #singly: QueuedChange[] = []
  /** A job whose first save went before its own: goes before everything. */
  #again: readonly QueuedChange[] = []
  readonly #inDoubt = new Map<string, PluginRef>()
  #repairs: (readonly string[])[] = []
  #inFlight: Attempt | undefined
  #running = false
  #heldCount = 0
  #abandoned: PlugstreamError | undefined
  #whenIdle: (() => void)[] = []
  #isLastRepairDue = false

  constructor(state: RegistryState, sequence: Sequence, ports: QueuePorts) {
    this.#state = state
    this.#sequence = sequence
    this.#ports = ports
  }

  push(change: QueuedChange): void {
    if (this.#abandoned) return change.refused(this.#abandoned)
    this.#waiting.push(change)
    this.#run()
  }

  /** Does `work` while nothing is applied and nothing published. */
  hold<T>(work: () => T): T {
    this.#heldCount++
    try {
      return work()
    } finally {
      this.#heldCount--
      this.#run()
    }
  }

  /** Resolves when nothing waits and nothing is in flight, and what is in doubt was written once more, or tried to be. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
      this.#isLastRepairDue = true
      this.#run()
    })
  }

  /** Refuses what is not saved yet. A store that answers later is not listened to. */
  abandon(error: PlugstreamError): void {
    this.#abandoned = error
    const left = [...(this.#inFlight?.job ?? []), ...this.#again, ...this.#singly, ...this.#waiting.splice(0)]
    this.#inFlight = undefined
    this.#again = this.#singly = []
    this.#repairs = []
    this.#isLastRepairDue = false
    for (const change of left) change.refused(error)
    this.#run()
  }

  #run(): void {
    if (this.#running) return
    this.#running = true
    while (this.#heldCount === 0) {
      const attempt = this.#inFlight ?? this.#next()
      if (!attempt) break
      if (attempt !== this.#inFlight) this.#start(attempt)
      if (!attempt.outcome) break
      this.#inFlight = undefined
      if (attempt.outcome.failure) attempt.failed(attempt.outcome.failure)
      else attempt.saved()
    }
    this.#running = false
    if (this.#isIdle()) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #start(attempt: Attempt): void {
    this.#inFlight = attempt
    if (attempt.writes.length === 0) {
      attempt.outcome = { failure: undefined }
      return
    }
    this.#ports.save(attempt.writes, (failure) => {
      if (this.#inFlight !== attempt) return
      attempt.outcome ??= { failure }
      this.#run()
    })
  }

  #next(): Attempt | undefined {
    const repair = this.#repairs.shift()
    if (repair) return this.#repair(repair)
    const job = this.#takeJob()
    if (job.length > 0) return this.#apply(job)
    if (!this.#isLastRepairDue || this.#inDoubt.size === 0) return undefined
    this.#isLastRepairDue = false
    return this.#repair([...this.#inDoubt.keys()])
  }

  #takeJob(): readonly QueuedChange[] {
    const again = this.#again
    this.#again = []
    if (again.length > 0) return again
    return this.#singly.length > 0 ? this.#singly.splice(0, 1) : this.#waiting.splice(0, batchCount)
  }

  #isIdle(): boolean {
    const counts = [this.#waiting, this.#singly, this.#again, this.#repairs].map(({ length }) => length)
    return !this.#inFlight && counts.every((count) => count === 0)
  }

  #apply(job: readonly QueuedChange[]): Attempt {
    const draft = new Draft(this.#state)
    const at = this.#ports.now()
    for (const { change } of job) draft.add(change, at)
    const failed = (failure: Failure): void => this.#failed(job, failure)
    if (draft.setAside.length > 0) {
      const saved = (): void => {
        draft.overwritten.forEach((unreadable) => (unreadable.setAside = true))
        this.#again = job
      }
      return { job, writes: draft.setAside, saved, failed }
    }
    const reservation = this.#sequence.reserve(draft.eventCount)
    return {
      job,
      writes: reservation ? [reservation, ...draft.writes] : draft.writes,
      saved: () => {
        if (reservation) this.#sequence.confirm()
        for (const { key } of draft.writes) this.#inDoubt.delete(key)
        if (draft.writes.length > 0) this.#planRepairs()
        draft.steps.forEach((step, at) => job[at] && this.#commit(step, job[at]))
      },
      failed: (failure) => {
        for (const step of draft.steps)
          if ('key' in step && step.kind !== 'confirmed') this.#inDoubt.set(step.key, refOf(step.plugin))
        failed(failure)
      },
    }
  }

  #commit(step: Step, change: QueuedChange): void {
    const event = this.#state.commit(step, () => this.#sequence.next())
    if (event) this.#ports.publish(event)
    change.done(step, event)
  }

  #failed(job: readonly QueuedChange[], failure: Failure): void {
    if (job.length > 1) this.#singly = [...job]
    else
      for (const one of isBusy(failure) ? [...job, ...this.#singly.splice(0)] : job)
        one.refused(refusal(one.change, failure))
  }

  #planRepairs(): void {
    if (this.#inDoubt.size > 0 && this.#repairs.length === 0) this.#repairs.push([...this.#inDoubt.keys()])
  }

  #repair(keys: readonly string[]): Attempt {
    const writes = keys.flatMap((key): StoreWrite[] => {
      const ref = this.#inDoubt.get(key)
      if (!ref) return []
      const instance = this.#state.find(ref)
      return [instance ? { kind: 'put', key, value: encodeRecord(instance) } : { kind: 'delete', key }]
    })
    return {
      job: [],
      writes,
      saved: () => {
        for (const { key } of writes) {
          this.#inDoubt.delete(key)
          this.#state.unreadable.delete(key) // its copy is kept, or it would not have been written over
        }
      },
      failed: (failure) => {
        if (isBusy(failure)) this.#repairs = []
        else if (keys.length > 1) this.#repairs.push(...keys.map((key) => [key]))
      },
    }
  }
}

function isBusy({ thrown }: Failure): boolean {
  return thrown instanceof PlugstreamError && thrown.details.busy === true
}

const participle = { register: 'registered', update: 'updated', deregister: 'deregistered' }

function refusal(change: ValidChange, { thrown }: Failure): PlugstreamError {
  const { type, name, allocId } = change.kind === 'register' ? change.plugin : change.ref
  return new PlugstreamError(
    'ERR_STORE_WRITE',
    `${type} ${name} of alloc ${allocId} was not ${participle[change.kind]}, since that could not be saved: ${messageOf(thrown)}`,
    { cause: thrown, retryable: true, details: { type, name, allocId } },
  )
}
