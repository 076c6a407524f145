import type { Attach } from './attach.js'
import type { State } from './state.js'
import type { Segments } from './topology.js'

/** What the parts of the driver share. */
export interface Driver {
  readonly state: State
  readonly attach: Attach
  readonly nodeId: string
  /** 0: no limit. */
  readonly maxVolumes: number
  readonly topology: Segments
}
