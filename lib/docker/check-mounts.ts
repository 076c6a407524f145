import { readFile, realpath } from 'node:fs/promises'
import { PlugstreamError } from '../errors.js'
import type { TaskMount } from '../task/task.js'

/**
 * What engines find fault with too late, in other words, or not at all: they make a directory that is not there, and start a container
 * whose mounts are seen by nobody, since its directory is not on a shared mount of the host.
 *
 * @throws ERR_CONTAINER naming the path, and what can be done.
 */
export async function checkMounts(
  mounts: readonly TaskMount[],
  {
    table = mountTable,
    resolve = realpath,
  }: { table?: () => Promise<string>; resolve?: (path: string) => Promise<string> } = {},
): Promise<void> {
  const hasShared = process.platform === 'linux' && mounts.some(({ propagation }) => propagation === 'bidirectional')
  const lines = hasShared ? await table() : ''
  for (const { hostPath, taskPath, propagation } of mounts) {
    const colon = [hostPath, taskPath].find((path) => path.includes(':'))
    if (colon !== undefined) throw refused(colon, `${colon} has a colon in it, with which an engine cannot mount it`)
    const path = await resolve(hostPath).catch((failure: unknown) => {
      const { code } = failure as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') return hostPath // the engine may do what this process may not
      throw refused(hostPath, `${hostPath} cannot be mounted in a container: it is not there`)
    })
    const mount = propagation === 'bidirectional' ? mountOf(lines, path) : undefined
    if (mount?.shared === false) throw notShared(hostPath, mount.point)
  }
}

const mountTable = (): Promise<string> => readFile('/proc/self/mountinfo', 'utf8')

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
  return refused(
    hostPath,
    `${hostPath} is on the mount ${mountPoint}, which is not shared: what is mounted in a container would not be seen outside of it. ` +
      `Make it shared, as systemd does, with: mount --make-rshared ${mountPoint} — or the state directory D alone, before the host is ` +
      'opened: mount --bind D D && mount --make-shared D',
    { mountPoint },
  )
}

function refused(path: string, message: string, more: Record<string, string> = {}): PlugstreamError {
  return new PlugstreamError('ERR_CONTAINER', message, { details: { path, ...more } })
}
