import { join, relative } from 'node:path'
import { escapePathPart } from '../path-escape.js'
import { stageUsageOf, usageOf } from './usage.js'
import type { TakenMount } from './take-mount.js'

type Of = Pick<TakenMount, 'namespace' | 'volumeId' | 'access'>

/** Where a volume is staged, below the volume root of its plugin: `staging/<namespace>/<volumeId>/<usage>`. */
export function stagingPath(root: string, { namespace, volumeId, access }: Of): string {
  return join(stagingRoot(root, namespace), escapePathPart(volumeId), stageUsageOf(access))
}

/** What is below it belongs to the volumes of one namespace. */
export function stagingRoot(root: string, namespace: string): string {
  return join(root, 'staging', escapePathPart(namespace))
}

/** Where an alloc sees a volume: `per-alloc/<allocId>/<namespace>/<volumeId>/<usage>`, the name of the mount behind it if it has one. */
export function targetPath(root: string, { namespace, volumeId, access, allocId, mountName }: TakenMount): string {
  const usage = usageOf(access) + (mountName === undefined ? '' : `.${escapePathPart(mountName)}`)
  return join(allocPath(root, allocId), escapePathPart(namespace), escapePathPart(volumeId), usage)
}

/** What is below it belongs to one alloc. */
export function allocPath(root: string, allocId: string): string {
  return join(root, 'per-alloc', escapePathPart(allocId))
}

/** A path of the host as the plugin sees it, which has the host's `root` at `seenRoot`. */
export function seenPath(path: string, root: string, seenRoot: string): string {
  return join(seenRoot, relative(root, path))
}
