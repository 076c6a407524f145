import {
  defer,
  filter,
  firstValueFrom,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  Observable,
  of,
  Subject,
  Subscription,
  timer,
  type ObservableInput,
  type Observer,
} from 'rxjs'
import { now as clock } from '../lib/clock.js'
import { defaultTiming, storeStallMs } from '../lib/defaults.js'
import { invalidOption, PlugstreamError } from '../lib/errors.js'
import { logger } from '../lib/log.js'
import { fieldsOf, takeOptions } from '../lib/options.js'
import { ChangeQueue, type Failure } from '../lib/plugin/change-queue.js'
import {
  refOf,
  type PluginInfo,
  type PluginRef,
  type PluginRegistration,
  type PluginType,
  type RegistryChange,
  type RegistryEvent,
} from '../lib/plugin/plugin.js'
import type { RegistryState, Step } from '../lib/plugin/registry-state.js'
import { restore, type Restored } from '../lib/plugin/restore.js'
import {
  validChange,
  validDeregistration,
  validName,
  validRegistration,
  type ValidChange,
} from '../lib/plugin/validate.js'
import { openStore } from '../lib/store/open-store.js'
import type { KeyvLike, StateStore, StoreWrite } from '../lib/store/state-store.js'
import { firstValue, type WaitOptions } from './operators/first-value.js'

/** What makes something to talk to an instance with, by plugin type. */
export type Dispensers = Partial<Record<PluginType, (plugin: PluginInfo) => unknown>>

/** A state store, of which a save may also be an Observable, as it is in virtual time. */
export interface RegistryStore extends Omit<StateStore, 'save'> {
  save(batch: readonly StoreWrite[]): ObservableInput<unknown>
}

/** What a registry is opened with. */
export interface RegistryInit {
  /** Where instances are kept: a Keyv whose adapter can iterate, or a store. Either stays its owner's to close. */
  store: KeyvLike | RegistryStore
  /** What `dispense` gives. Default: nothing for any type. */
  dispensers?: Dispensers | undefined
  /** What types may be registered; what was restored stays, of whichever it is. Default: any. A host knows those of its plugin kinds. */
  types?: readonly PluginType[] | undefined
  /** How long `close` waits for the store, in ms. Default: 5 000. */
  closeTimeoutMs?: number | undefined
  /** The time in Unix ms. Default: the system's clock. */
  now?: (() => number) | undefined
}

const initFields = fieldsOf<RegistryInit>({
  store: true,
  dispensers: true,
  types: true,
  closeTimeoutMs: true,
  now: true,
})

/** What `register` gives back. It closes over its own type, name and alloc, and over this very registration of them. */
export interface Registration extends AsyncDisposable {
  readonly plugin: PluginInfo
  /**
   * Deregisters it. Does nothing where that is done already, or where the same ref was registered again since.
   * @throws ERR_STORE_WRITE where it could not be saved: it is registered still. ERR_CLOSED.
   */
  deregister(reason?: string): Promise<void>
}

interface Applied {
  step: Step
  event: RegistryEvent | undefined
}

const log = logger('registry')

/**
 * Who is registered: changes flow in, events flow out, and whatever is told was saved before. It is an Observer, so that
 * `merge(register$, deregister$).subscribe(registry)` is the whole wiring.
 *
 * Changes are applied one after the other, in the order they arrive from whatever source, those made inside a subscriber included;
 * every subscriber sees the same events in the same order. A change that cannot be saved is refused, and everything is as it was
 * before it. A subscriber that throws disturbs nobody; what it throws is an uncaught exception, as anywhere in RxJS.
 *
 * @example
 * await using registry = await Registry.open({ store: new Keyv() })
 * registry.event$.subscribe(({ kind, plugin }) => console.log(kind, plugin.name))
 * const plugin = { type: 'csi-node', name: 'ebs', allocId: 'a1', connection: { socketPath: '/run/ebs.sock' } }
 * const registration = await registry.register(plugin) // registered ebs
 * await registration.deregister() // deregistered ebs
 */
export class Registry implements Observer<RegistryChange>, AsyncDisposable {
  /** Every change from now on, after it was saved. Never errors; completes at `close`. */
  readonly event$: Observable<RegistryEvent>
  /** One `registered` event for each instance there is, oldest first, then what `event$` tells; nothing twice, nothing missed. */
  readonly watch$: Observable<RegistryEvent>
  /** All instances, oldest first: now, then after every change. */
  readonly plugins$: Observable<readonly PluginInfo[]>
  /** Records that cannot be read (told to each subscriber), changes that could not be saved or made no sense, sources that failed. */
  readonly problem$: Observable<PlugstreamError>

  readonly #event$ = new Subject<RegistryEvent>()
  readonly #problem$ = new Subject<PlugstreamError>()
  readonly #sources = new Subscription()
  readonly #store: RegistryStore
  readonly #ownsStore: boolean
  readonly #state: RegistryState
  readonly #queue: ChangeQueue
  readonly #dispensers: Dispensers
  readonly #types: readonly PluginType[] | undefined
  readonly #closeTimeoutMs: number
  #saving = Subscription.EMPTY
  #closed = false
  #closing: Promise<void> | undefined

  private constructor(
    init: RegistryInit,
    store: RegistryStore,
    restored: Restored,
    unsaved: readonly PlugstreamError[],
  ) {
    this.#store = store
    this.#ownsStore = store !== init.store
    this.#state = restored.state
    this.#dispensers = init.dispensers ?? {}
    this.#types = init.types
    this.#closeTimeoutMs = init.closeTimeoutMs ?? defaultTiming.closeTimeoutMs
    this.#queue = new ChangeQueue(restored.state, restored.sequence, {
      save: (batch, done) => this.#save(batch, done),
      publish: (event) => this.#event$.next(event),
      now: init.now ?? clock,
    })
    this.event$ = this.#event$.asObservable()
    this.watch$ = this.#presentThen(() => this.#state.replay(), this.#event$)
    this.plugins$ = this.#presentThen(
      () => [this.#state.plugins()],
      this.#event$.pipe(map(() => this.#state.plugins())),
    )
    const unread = (): PlugstreamError[] => [...this.#state.unreadable.values()].map(({ problem }) => problem)
    this.problem$ = this.#presentThen(() => [...unread(), ...unsaved], this.#problem$)
  }

  /**
   * Opens a registry. Resolves when everything is restored that was saved before.
   *
   * @throws ERR_OPTION_INVALID where the store is none, or a Keyv that cannot iterate; ERR_STORE_READ where it cannot be read. One
   * that can be read but not written does open, and says so on `problem$`.
   */
  static async open(init: RegistryInit): Promise<Registry> {
    takeOptions('init', init, initFields)
    const store = openStore<RegistryStore>(init.store)
    const restored = await restore(store, (init.now ?? clock)())
    const problems: PlugstreamError[] = []
    if (restored.writes.length > 0) {
      try {
        await lastValueFrom(from(store.save(restored.writes)), { defaultValue: undefined })
        restored.sequence.confirm()
      } catch (failure) {
        problems.push(PlugstreamError.from(failure, 'ERR_STORE_WRITE', 'the sequence numbers could not be saved'))
      }
    }
    log('restored %d, %d unreadable', restored.state.size, restored.state.unreadable.size)
    return new Registry(init, store, restored, problems)
  }

  /**
   * Registers an instance, or updates it. Resolves once that is saved and every subscriber has its event; where it is registered just
   * so already, nothing is written and nobody is told.
   *
   * @throws ERR_OPTION_INVALID naming the field, ERR_SOCKET_PATH where the path is longer than the platform takes, ERR_STORE_WRITE
   * where it could not be saved, ERR_CLOSED.
   */
  async register(plugin: PluginRegistration): Promise<Registration> {
    const { step } = await this.#change(this.#known({ kind: 'register', plugin: validRegistration(plugin) }))
    if (step.kind === 'nothing') throw new TypeError('a registration always comes to something')
    const { generation } = step
    const ref = refOf(step.plugin)
    const deregister = async (reason?: string): Promise<void> => {
      await this.#change({ ...validDeregistration(ref, reason), generation })
    }
    return { plugin: step.plugin, deregister, [Symbol.asyncDispose]: () => deregister() }
  }

  /**
   * Deregisters an instance: exactly the one of this type, name and alloc.
   *
   * @returns false where it was not registered: no event, no error.
   * @throws ERR_OPTION_INVALID naming the field, ERR_STORE_WRITE where it could not be saved, ERR_CLOSED.
   */
  async deregister(ref: PluginRef, reason?: string): Promise<boolean> {
    return (await this.#change(validDeregistration(ref, reason))).event !== undefined
  }

  /**
   * Applies a change. Takes its place in the queue in the call itself, and resolves once it is saved and told.
   *
   * @returns its event; undefined where it changed nothing.
   * @throws as `register` and `deregister`.
   */
  async apply(change: RegistryChange): Promise<RegistryEvent | undefined> {
    return (await this.#change(this.#known(validChange(change)))).event
  }

  /** A change to be applied. What is wrong with it is told on `problem$`. */
  next(change: RegistryChange): void {
    let valid
    try {
      valid = this.#known(validChange(change))
    } catch (failure) {
      return this.#tell(failure)
    }
    this.#change(valid).catch(() => undefined) // told on problem$, as every refusal is
  }

  /** A source failed; told on `problem$`. The registry goes on. */
  error(failure: unknown): void {
    this.#tell(PlugstreamError.from(failure, 'ERR_USAGE', 'a source of changes failed'))
  }

  /** A source ended. The registry goes on. */
  complete(): void {
    log('a source of changes ended')
  }

  /** Subscribes to a source of changes, until the subscription is ended or the registry is closed. */
  connect(change$: Observable<RegistryChange>): Subscription {
    const source = change$.subscribe(this)
    this.#sources.add(source)
    return source
  }

  /** The current instance of each plugin, of one type or of all. Says nothing of health. */
  list(type?: PluginType): readonly PluginInfo[] {
    return this.#state.list(type)
  }

  /** The instances of one plugin, newest first. */
  instances(type: PluginType, name: string): readonly PluginInfo[] {
    return this.#state.instances(type, name)
  }

  /** What one alloc serves, oldest first. */
  instancesOf(allocId: string): readonly PluginInfo[] {
    return this.#state.instancesOf(allocId)
  }

  get(ref: PluginRef): PluginInfo | undefined {
    return this.#state.find(ref)?.plugin
  }

  /**
   * Waits until a plugin is registered; its current instance. Nothing is polled.
   *
   * @throws ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED; ERR_OPTION_INVALID naming the field.
   */
  async waitFor(type: PluginType, name: string, options: WaitOptions = {}): Promise<PluginInfo> {
    const waiting = `waiting for ${validName('type', type)} plugin ${JSON.stringify(validName('name', name))}`
    if (this.#closed) throw closed()
    const current = this.#state.current(type, name)
    const registered$ = this.#event$.pipe(
      filter(({ kind, plugin }) => kind === 'registered' && plugin.type === type && plugin.name === name),
      map(({ plugin }) => plugin),
    )
    return firstValue(current ? of(current) : registered$, waiting, options)
  }

  /**
   * What the dispenser of that type makes for the plugin's current instance.
   *
   * @throws ERR_PLUGIN_UNKNOWN where there is no such plugin, or no dispenser for its type; whatever the dispenser throws.
   */
  dispense<T>(type: PluginType, name: string): T {
    const dispenser = Object.hasOwn(this.#dispensers, type) ? this.#dispensers[type] : undefined
    if (!dispenser) throw unknown(`no dispenser was given for plugins of type ${type}`, type, name)
    const plugin = this.#state.current(type, name)
    if (!plugin) throw unknown(`no plugin ${name} of type ${type} is registered`, type, name)
    return dispenser(plugin) as T
  }

  /**
   * Closes the registry: sources are let go, what waits is saved and told as long as `closeTimeoutMs` allows, the streams complete.
   * Calls that come later reject with ERR_CLOSED. Deregisters nothing. Idempotent, joins a close in flight, and never rejects.
   */
  close(): Promise<void> {
    this.#closed = true
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#sources.unsubscribe()
    const drained$ = from(this.#queue.drained()).pipe(map(() => true))
    const isDrained = await firstValueFrom(merge(drained$, timer(this.#closeTimeoutMs).pipe(map(() => false))))
    this.#queue.abandon(closed('before the store had saved it'))
    this.#saving.unsubscribe()
    this.#event$.complete()
    this.#problem$.complete()
    if (!this.#ownsStore) return
    const closing = this.#store.close()
    if (isDrained) await closing // one that still saves would be waited for
  }

  /** @throws ERR_OPTION_INVALID for a registration of a type that nobody here can do anything with. */
  #known(change: ValidChange): ValidChange {
    if (change.kind !== 'register' || !this.#types || this.#types.includes(change.plugin.type)) return change
    throw invalidOption('type', change.plugin.type, `one of ${this.#types.join(', ')}`)
  }

  #change(change: ValidChange): Promise<Applied> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closed())
      const refused = (error: PlugstreamError): void => {
        this.#tell(error)
        reject(error)
      }
      this.#queue.push({ change, done: (step, event) => resolve({ step, event }), refused })
    })
  }

  #save(batch: readonly StoreWrite[], done: (failure?: Failure) => void): void {
    const stall = timer(storeStallMs).subscribe(() => {
      const message = `the store has not answered for ${storeStallMs} ms; what comes waits for it`
      this.#tell(new PlugstreamError('ERR_TIMEOUT', message))
    })
    const end = (failure?: Failure): void => {
      stall.unsubscribe()
      done(failure)
    }
    this.#saving = defer(() => this.#store.save(batch))
      .pipe(ignoreElements())
      .subscribe({ error: (thrown: unknown) => end({ thrown }), complete: () => end() })
    this.#saving.add(stall)
  }

  #tell(failure: unknown): void {
    this.#problem$.next(PlugstreamError.from(failure, 'ERR_USAGE', 'a change could not be applied'))
  }

  /** What is true now, then what comes, with nothing in between: the queue is held until the second is subscribed. */
  #presentThen<T>(present: () => readonly T[], live$: Observable<T>): Observable<T> {
    return new Observable((subscriber) =>
      this.#queue.hold(() => {
        for (const value of present()) subscriber.next(value)
        return live$.subscribe(subscriber)
      }),
    )
  }
}

function closed(when = ''): PlugstreamError {
  return new PlugstreamError('ERR_CLOSED', `the registry was closed${when && ` ${when}`}`)
}

function unknown(message: string, type: string, name: string): PlugstreamError {
  return new PlugstreamError('ERR_PLUGIN_UNKNOWN', message, { details: { type, name } })
}
