import type { CsiClient } from '../../../lib/csi/client.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { VolumePorts } from '../../../lib/volume/ports.js'
import { fakeHost, FakePlugin, fakePorts, type FakeHost } from '../../fakes/fake-volumes.js'

/** When a host dies: at its `at`th step, before the step has had an effect or after. */
export interface Death {
  at: number
  when: 'before' | 'after'
}

/** A save that fails: the `at`th from now, which may have been kept all the same. */
export interface SaveFault {
  at: number
  isKept: boolean
}

/** How long a host that is dead is waited for: what it began never ends. */
export const buryMs = 1

/**
 * A host that dies at one of its steps, as by kill -9: whatever it does with the world outside of itself is a step. After its death nothing
 * of it has an effect any more, and nobody answers it.
 */
export class MortalHost {
  readonly plugin: FakePlugin
  /** Resolves with the step it died at. */
  readonly died: Promise<string>
  #death: Death | undefined
  #steps = 0
  #underWay = 0
  #isDead = false
  #saveFault: SaveFault | undefined
  #die: (step: string) => void = () => undefined

  constructor(plugin: FakePlugin, death: Death | undefined) {
    this.plugin = plugin
    this.#death = death
    this.died = new Promise((resolve) => (this.#die = resolve))
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** None of its steps is under way. Between two turns of the event loop it does nothing then, unless it waits for time to pass. */
  get isIdle(): boolean {
    return this.#underWay === 0
  }

  /** Dies at a step that is counted from now. */
  dieAt({ at, when }: Death): void {
    this.#death = { at: this.#steps + at, when }
  }

  die(at = 'killed'): void {
    this.#isDead = true
    this.#die(at)
  }

  /** Does not die where it was to die. */
  spare(): void {
    this.#death = undefined
  }

  /** Fails to save something some saves from now, or never mind where it is undefined. */
  failToSave(fault: SaveFault | undefined): void {
    this.#saveFault = fault && { ...fault }
  }

  async open(records: Map<string, string>): Promise<FakeHost> {
    const living = fakePorts(this.plugin, records)
    const { store, files } = living
    const over: Partial<VolumePorts> = {
      store: {
        read: (prefix) => store.read(prefix),
        save: (batch) => this.#step('save', () => this.#save(() => store.save(batch))),
      },
      files: {
        ...files,
        mounts: () => this.#step('mounts', () => files.mounts()),
        placeOf: (...path) => this.#step('placeOf', () => files.placeOf(...path)),
        isLink: (path) => this.#step('isLink', () => files.isLink(path)),
        makeDirectory: (...path) => this.#step('makeDirectory', () => files.makeDirectory(...path)),
        removeIfEmpty: (path) => {
          if (!this.#isDead) files.removeIfEmpty(path)
        },
        look: (...path) => this.#step('look', () => files.look(...path)),
      },
      ready: (...about) => this.#step('ready', () => living.ready(...about)),
      secrets: (...about) => this.#step('secrets', () => living.secrets(...about)),
      client: () => this.#client,
    }
    return fakeHost(this.plugin, records, over)
  }

  /** Does something with it until that is done or it dies; then it is gone either way. Tells at which step it died. */
  async live(
    work: (host: FakeHost, isOver: () => boolean) => Promise<unknown>,
    records: Map<string, string>,
  ): Promise<string | undefined> {
    const host = await this.open(records)
    // It may die while it closes, too.
    const done = work(host, () => this.#isDead)
      .catch(() => undefined)
      .then(() => host.close())
      .then(() => undefined)
    const died = await Promise.race([done, this.died])
    if (died !== undefined) void host.close(buryMs)
    return died
  }

  readonly #client = new Proxy({} as CsiClient, {
    get: (_, method: string) => {
      const { client } = this.plugin as unknown as { client: Record<string, (...args: unknown[]) => Promise<unknown>> }
      return (...args: unknown[]) => this.#step(method, async () => client[method]?.(...args))
    },
  })

  async #save(save: () => Promise<void>): Promise<void> {
    const fault = this.#saveFault
    if (!fault || --fault.at > 0) return save()
    this.#saveFault = undefined
    if (fault.isKept) await save()
    throw new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
  }

  async #step<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#isDead) return never()
    const step = ++this.#steps
    const death = this.#death?.at === step ? this.#death : undefined
    const dies = (): boolean => death !== undefined && death === this.#death // it may have been spared meanwhile
    if (death?.when === 'before') this.die(`step ${step}, before ${name}`)
    else {
      this.#underWay++
      const ended = work().finally(() => this.#underWay--)
      await ended.catch(() => undefined)
      if (dies()) this.die(`step ${step}, after ${name}`)
      if (!this.isDead) return ended
    }
    return never()
  }
}

const never = (): Promise<never> => new Promise(() => undefined)
