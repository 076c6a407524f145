import { dirname } from 'node:path'
import type { CsiClient } from '../csi/client.js'
import type { Secrets } from '../csi/messages/shared.js'
import { isNotFound, isUnsupported, mountError } from './errors.js'
import type { Limits } from './limits.js'
import { MountCheck } from './mount-check.js'
import type { VolumeFiles } from './ports.js'
import type { VolumeAccess } from './volume.js'
import type { Claim, VolumeRecord } from './volume-record.js'

/** The plugin that does the work. */
export interface NodePlugin {
  client: CsiClient
  /** Waits until it is there: it may have gone since the step before. */
  ready: (limits: Limits) => Promise<void>
  /** A path of the host as the plugin sees it. */
  seen: (path: string) => string
  /** @throws ERR_OPTION_INVALID where secrets are needed and not to be had. */
  secrets: (rpc: string, limits: Limits) => Promise<{ secrets?: Secrets }>
  files: VolumeFiles
}

/**
 * Stages the volume at the place of its record. Idempotent, as each of the steps.
 *
 * @returns false where the plugin has no staging.
 */
export async function stage(
  { client, ready, seen, secrets, files }: NodePlugin,
  record: VolumeRecord,
  { access, path }: { access: VolumeAccess; path: string },
  limits: Limits,
): Promise<boolean> {
  await files.makeDirectory(record.root, path)
  const request = {
    volumeId: record.volumeId,
    stagingTargetPath: seen(path),
    volumeCapability: access,
    ...contextsOf(record),
    ...(await secrets('NodeStageVolume', limits)),
  }
  await ready(limits)
  limits.doing = 'NodeStageVolume'
  try {
    await client.nodeStageVolume(request, limits.call)
    return true
  } catch (failure) {
    if (!isUnsupported(failure)) throw failure
    for (const empty of [path, dirname(path)]) files.removeIfEmpty(empty)
    return false
  }
}

/** A place for a new use, on which nothing is mounted from elsewhere, and which leads nowhere else. @throws ERR_MOUNT. */
export async function checkFree(plugin: NodePlugin, root: string, path: string): Promise<void> {
  const place = await plugin.files.placeOf(root, path)
  await new MountCheck(plugin.files, place).mustBeFree()
  await checkNoLink(plugin, place)
}

/**
 * A plugin would mount where a link leads, and nobody would look there again. One that it made itself, as those do that may not mount,
 * is there only after its first call. @throws ERR_MOUNT.
 */
export async function checkNoLink({ files }: NodePlugin, path: string): Promise<void> {
  if (await files.isLink(path)) throw mountError(`${path} is a symbolic link that is none of ours`, path)
}

/** What there is not of a use that is mounted, for people: somebody else may have unmounted it. Undefined where it is there. */
export async function missing(files: VolumeFiles, root: string, { access, path }: Claim): Promise<string | undefined> {
  if (access.kind === 'block') return undefined // for which the specification promises no mount
  return new MountCheck(files, await files.placeOf(root, path)).missing(access.readonly ?? false)
}

/** @throws ERR_MOUNT where nothing is mounted there after the plugin's OK. */
export async function publish(
  { client, ready, seen, secrets, files }: NodePlugin,
  record: VolumeRecord,
  { access, path }: Claim,
  limits: Limits,
): Promise<void> {
  const { readonly = false, ...volumeCapability } = access
  const check = new MountCheck(files, await files.placeOf(record.root, path))
  const request = {
    volumeId: record.volumeId,
    targetPath: seen(path),
    ...(record.stage && { stagingTargetPath: seen(record.stage.path) }),
    volumeCapability,
    readonly,
    ...contextsOf(record),
    ...(await secrets('NodePublishVolume', limits)),
  }
  await ready(limits)
  limits.doing = 'NodePublishVolume'
  await client.nodePublishVolume(request, limits.call)
  // For a block device the specification promises no mount.
  if (access.kind === 'mount') await check.mustBeMounted(readonly)
}

/** @throws what the plugin fails with; its NOT_FOUND only where something is still mounted there. */
export async function unpublish(plugin: NodePlugin, record: VolumeRecord, path: string, limits: Limits): Promise<void> {
  const { client, ready, seen } = plugin
  await ready(limits)
  limits.doing = 'NodeUnpublishVolume'
  await undo(plugin, record, path, () =>
    client.nodeUnpublishVolume({ volumeId: record.volumeId, targetPath: seen(path) }, limits.call),
  )
}

/** As `unpublish`; nothing is to be done where the plugin has no staging and nothing is mounted there. */
export async function unstage(plugin: NodePlugin, record: VolumeRecord, path: string, limits: Limits): Promise<void> {
  const { client, ready, seen } = plugin
  await ready(limits)
  limits.doing = 'NodeUnstageVolume'
  await undo(plugin, record, path, () =>
    client.nodeUnstageVolume({ volumeId: record.volumeId, stagingTargetPath: seen(path) }, limits.call),
  )
}

async function undo(
  { files }: NodePlugin,
  { root }: VolumeRecord,
  path: string,
  call: () => Promise<unknown>,
): Promise<void> {
  const check = new MountCheck(files, await files.placeOf(root, path))
  try {
    await call()
  } catch (failure) {
    if (!isNotFound(failure) && !isUnsupported(failure)) throw failure
    await check.mustBeGone(failure as Error)
  }
  await check.mustBeGone()
  for (const empty of [path, dirname(path)]) files.removeIfEmpty(empty)
}

function contextsOf({ publishContext, volumeContext }: VolumeRecord) {
  return { ...(publishContext && { publishContext }), ...(volumeContext && { volumeContext }) }
}
