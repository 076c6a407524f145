import type { VolumeRecord } from './volume-record.js'

/** Where a volume is for its plugin, as calls on the node want it. */
export interface Places {
  volumeId: string
  volumePath: string
  stagingTargetPath?: string
}

/** @param seen a path of the host as the plugin sees it. */
export function placesOf(
  { volumeId, stage }: VolumeRecord,
  { path }: { path: string },
  seen: (path: string) => string,
): Places {
  return { volumeId, volumePath: seen(path), ...(stage && { stagingTargetPath: seen(stage.path) }) }
}
