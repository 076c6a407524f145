import { hashText } from '../path-escape.js'
import type { VolumeAccess } from './volume.js'

/** What a mount is used for where nothing is said. */
export const usualAccess: VolumeAccess = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }

/**
 * What a use of a volume is, as one text: equal for equal values, however they were written, and short and plain enough for the name of a
 * directory.
 *
 * @example usageOf({ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', readonly: true }) // 'ro-mount-single-node-writer'
 */
export function usageOf(access: VolumeAccess): string {
  return `${access.readonly ? 'ro' : 'rw'}-${stageUsageOf(access)}`
}

/**
 * The part of it that staging knows of: whether a use is read-only is for publishing. The specification has one staging path a volume, so
 * only uses that are alike in this can share a volume that is staged.
 */
export function stageUsageOf(access: VolumeAccess): string {
  const mode = access.accessMode.toLowerCase().replaceAll('_', '-')
  return `${access.kind}-${mode}${optionsOf(access)}`
}

/** Mount options by value: nothing where there are none. A hash, since they may hold credentials. */
function optionsOf(access: VolumeAccess): string {
  if (access.kind === 'block') return ''
  const { fsType = '', mountFlags = [], volumeMountGroup = '' } = access
  if (fsType === '' && mountFlags.length === 0 && volumeMountGroup === '') return ''
  return `-${hashText(JSON.stringify([fsType, mountFlags, volumeMountGroup])).slice(0, 16)}`
}

/** An access without the flags that may hold credentials, to be shown: a copy, which who is shown it may change. */
export function shownAccess(access: VolumeAccess): VolumeAccess {
  if (access.kind === 'block') return { ...access }
  const { mountFlags: _hidden, ...shown } = access
  return shown
}
