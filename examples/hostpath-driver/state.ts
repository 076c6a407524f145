import { join } from 'node:path'
import { status } from 'plugstream/csi'
import { Records } from './records.js'

export type Kind = 'mount' | 'block'

export interface Volume {
  id: string
  name: string
  kind: Kind
  capacityBytes: string
  parameters: Record<string, string>
  mutableParameters: Record<string, string>
  /** The volume or snapshot it was copied from. */
  sourceId?: string
  /** The nodes that it was published to by the controller. */
  published: Publication[]
}

export interface Publication {
  nodeId: string
  readonly: boolean
  accessMode: string
}

export interface Snapshot {
  id: string
  volumeId: string
  kind: Kind
  sizeBytes: string
  /** Unix ms. */
  createdAt: number
  groupId?: string
}

export interface Group {
  id: string
  volumeIds: string[]
  snapshotIds: string[]
  createdAt: number
}

export interface NodeRecord {
  id: string
  /** 0: no limit. */
  maxVolumes: number
}

/** Everything the driver knows: what is in its directory, and which operations are under way. */
export class State {
  readonly directory: string
  readonly volumes: Records<Volume>
  readonly snapshots: Records<Snapshot>
  readonly groups: Records<Group>
  readonly nodes: Records<NodeRecord>
  readonly #busy = new Set<string>()

  constructor(directory: string) {
    this.directory = directory
    this.volumes = new Records(join(directory, 'volumes'), 'volume')
    this.snapshots = new Records(join(directory, 'snapshots'), 'snapshot')
    this.groups = new Records(join(directory, 'groups'), 'group')
    this.nodes = new Records(join(directory, 'nodes'), 'node')
  }

  /** The files of a volume, or its one file if it is a block volume. */
  volumeData(id: string): string {
    return this.volumes.path(id, 'data')
  }

  snapshotData(id: string): string {
    return this.snapshots.path(id, 'data')
  }

  /** One operation on a volume at a time; the specification has a status for the second one. */
  async exclusive<T>(ids: string | readonly string[], operation: () => Promise<T>): Promise<T> {
    const all = new Set([ids].flat())
    for (const id of all) if (this.#busy.has(id)) throw status('ABORTED', `another operation on ${id} is under way`)
    for (const id of all) this.#busy.add(id)
    try {
      return await operation()
    } finally {
      for (const id of all) this.#busy.delete(id)
    }
  }
}
