import type { MountRequest } from '../../lib/volume/volume.js'
import type { VolumeWork } from './programs/volume-host.js'
import type { Point } from './volumes-driver.js'

/** One volume, and how far the host and the plugin are with it when one of them is killed. */
export interface CrashCase {
  what: VolumeWork['what']
  rpc: string
  when: Point['when']
  /** Somebody else has it mounted all the time. */
  isShared: boolean
}

/** Each step of mount and unmount. */
export const crashCases: readonly CrashCase[] = [
  ...casesAt('mount', false, 'ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'),
  ...casesAt('unmount', false, 'NodeUnpublishVolume', 'NodeUnstageVolume', 'ControllerUnpublishVolume'),
  ...casesAt('mount', true, 'NodePublishVolume'),
  ...casesAt('unmount', true, 'NodeUnpublishVolume'),
]

function casesAt(what: CrashCase['what'], isShared: boolean, ...rpcs: string[]): CrashCase[] {
  return rpcs.flatMap((rpc) => (['before', 'after'] as const).map((when) => ({ what, rpc, when, isShared })))
}

export const plugin = 'disk'
const access = { kind: 'mount', accessMode: 'SINGLE_NODE_MULTI_WRITER' } as const

/** How an alloc of these cases uses a volume; it is `killed` whose mount or unmount does not come to its end. */
export const useBy = (allocId: 'killed' | 'other', volumeId: string): MountRequest => ({
  plugin,
  volumeId,
  allocId,
  access,
})

export const pointOf = ({ rpc, when }: CrashCase, volumeId: string): Point => ({
  rpc,
  when,
  volumeId,
  ...(/^Node(P|Unp)ublish/.test(rpc) && { path: '/per-alloc/killed/' }),
})
