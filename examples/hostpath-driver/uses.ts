import { isDeepStrictEqual } from 'node:util'
import { status } from 'plugstream/csi'
import { detach, identityOf } from './attach.js'
import type { Driver } from './driver.js'
import { freeLoopDevices, loopDevice, loopDevices } from './loop.js'
import { Records } from './records.js'
import type { Volume } from './state.js'

export interface Access {
  readonly: boolean
  accessMode: string
  mountFlags: string[]
  mountGroup: string
}

/** A path that a volume is staged or published at. */
export interface Use {
  id: string
  path: string
  as: 'staged' | 'published'
  access: Access
  /** What the path has led to at first; tells the volume also when its data is gone. */
  identity: string
}

/** Where volumes are seen on this node. Each use has a record of its own, so that the controller and a node never write the same one. */
export class Uses {
  readonly #driver: Driver

  constructor(driver: Driver) {
    this.#driver = driver
  }

  list(volume: Volume): Promise<Use[]> {
    return this.#records(volume).list()
  }

  /** Whether it really is there; what is only on record, as after a reboot, does not count. */
  async isAttached(use: Use, volume: Volume): Promise<boolean> {
    if (isDevice(use, volume)) return (await loopDevices(this.#data(volume.id))).length > 0
    return (await this.#identities(use, volume)).includes((await identityOf(use.path)) ?? '')
  }

  /** The use of a volume at a path, if it really is one. */
  async at(volume: Volume, path: string): Promise<Use | undefined> {
    const records = this.#records(volume)
    const use = await records.find(records.idOf(path))
    return use && (await this.isAttached(use, volume)) ? use : undefined
  }

  async attached(volume: Volume): Promise<Use[]> {
    const uses = await this.list(volume)
    const really = await Promise.all(uses.map((use) => this.isAttached(use, volume)))
    return uses.filter((_, index) => really[index])
  }

  async any(volume: Volume): Promise<boolean> {
    return (await this.attached(volume)).length > 0
  }

  async begin(volume: Volume, { path, as, access }: Pick<Use, 'path' | 'as' | 'access'>): Promise<void> {
    const existing = await this.at(volume, path)
    if (existing) {
      if (existing.as === as && isDeepStrictEqual(existing.access, access)) return
      throw status('ALREADY_EXISTS', `volume ${volume.id} is at ${path} with other access`)
    }
    const records = this.#records(volume)
    const source = volume.kind === 'block' ? await this.#device(volume, access.readonly) : this.#data(volume.id)
    const identity = await identityOf(source)
    if (identity === undefined) throw status('INTERNAL', `the data of volume ${volume.id} is not there`)
    // On record first: what was done and is not on record could not be undone later.
    await records.save({ id: records.idOf(path), path, as, access, identity })
    if (isDevice({ as }, volume)) return
    const options = [...(access.readonly ? ['ro'] : []), ...access.mountFlags]
    await this.#driver.attach.attach(source, path, options)
  }

  /** Whatever is at the path and is not this volume is left alone. */
  async end(volume: Volume, path: string): Promise<boolean> {
    const records = this.#records(volume)
    const use = await records.find(records.idOf(path))
    if (!use) return false
    if (!isDevice(use, volume)) await detach(this.#data(volume.id), await this.#identities(use, volume), path)
    const others = (await records.list()).length - 1
    if (volume.kind === 'block' && others === 0) await freeLoopDevices(this.#data(volume.id))
    await records.remove(use.id)
    return true
  }

  /** A directory keeps its identity, but for the number of its file system, which may be another after a reboot. */
  async #identities({ identity }: Use, { id, kind }: Volume): Promise<string[]> {
    const now = kind === 'mount' ? await identityOf(this.#data(id)) : undefined
    return now === undefined ? [identity] : [identity, now]
  }

  #device(volume: Volume, readonly: boolean): Promise<string> {
    return loopDevice(this.#data(volume.id), readonly)
  }

  #data(id: string): string {
    return this.#driver.state.volumeData(id)
  }

  #records(volume: Volume): Records<Use> {
    return new Records<Use>(this.#driver.state.volumes.path(volume.id, 'uses'), 'use')
  }
}

/** A block volume is staged once it has a device; only a publication shows it at a path. */
function isDevice({ as }: Pick<Use, 'as'>, { kind }: Volume): boolean {
  return kind === 'block' && as === 'staged'
}
