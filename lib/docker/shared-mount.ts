import { readFile, realpath } from 'node:fs/promises'
import { PlugstreamError } from '../errors.js'
import type { TaskMount } from '../task/task.js'

/**
 * Mounts go both ways only where the directory is on a shared mount of the host. Some engines say so; others start the container, and its
 * mounts are seen by nobody.
 *
 * @throws ERR_CONTAINER naming the directory, the mount it is on, and how to make that shared.
 */
export async function checkShared(
  mounts: readonly TaskMount[],
  readMounts = (): Promise<string> => readFile('/proc/self/mountinfo', 'utf8'),
): Promise<void> {
  const both = mounts.filter(({ propagation }) => propagation === 'bidirectional')
  if (both.length === 0 || process.platform !== 'linux') return
  const table = await readMounts()
  for (const { hostPath } of both) {
    const path = await realpath(hostPath).catch(() => hostPath)
    const mount = mountOf(table, path)
    if (mount && !mount.shared) throw notShared(hostPath, mount.point)
  }
}

/** The mount that a path is on: of those above it the longest, and of two at one place the later. */
function mountOf(table: string, path: string): { point: string; shared: boolean } | undefined {
  let found: { point: string; shared: boolean } | undefined
  for (const line of table.split('\n')) {
    const fields = line.split(' ')
    const dash = fields.indexOf('-', 6)
    if (dash < 0) continue
    const point = plain(fields[4] ?? '')
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`)
    if (!isAbove || point.length < (found?.point.length ?? 0)) continue
    found = { point, shared: fields.slice(6, dash).some((field) => field.startsWith('shared:')) }
  }
  return found
}

/** Undoes `\ooo`, each a byte. */
function plain(field: string): string {
  if (!field.includes('\\')) return field
  const bytes = Buffer.from(field, 'utf8').toString('latin1')
  return Buffer.from(
    bytes.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
    'latin1',
  ).toString('utf8')
}

function notShared(hostPath: string, mountPoint: string): PlugstreamError {
  return new PlugstreamError(
    'ERR_CONTAINER',
    `${hostPath} is on the mount ${mountPoint}, which is not shared: what is mounted in a container would not be seen outside of it. ` +
      `Make it shared, as systemd does, with: mount --make-rshared ${mountPoint} — or the state directory D alone, before the host is ` +
      'opened: mount --bind D D && mount --make-shared D',
    { details: { path: hostPath, mountPoint } },
  )
}
