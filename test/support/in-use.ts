import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'

/**
 * What this process holds: whatever keeps its event loop alive, and, where there is a /proc, the children it has and the named
 * sockets it serves, which an `unref` would hide from the first. Told a turn later, when the test runner's own timer is set.
 */
export async function inUse(): Promise<string[]> {
  await turn()
  return [...process.getActiveResourcesInfo().filter((kind) => kind !== 'Immediate'), ...children(), ...servedSockets()]
}

/** What is in use and was not `before`, once it no longer changes for the better; the wait is for closes that are under way. */
export async function leftSince(before: readonly string[], patienceMs = 5_000): Promise<string[]> {
  const until = performance.now() + patienceMs
  for (;;) {
    const left = without(await inUse(), before)
    if (left.length === 0 || performance.now() > until) return left
  }
}

function without(all: readonly string[], some: readonly string[]): string[] {
  const rest = [...some]
  return all.filter((one) => {
    const at = rest.indexOf(one)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
}

function children(): string[] {
  const pids = entries('/proc/self/task').flatMap((thread) => words(`/proc/self/task/${thread}/children`))
  // The TypeScript loader keeps a compiler of its own.
  return pids
    .map((pid) => `child ${pid} ${words(`/proc/${pid}/comm`).join(' ')}`)
    .filter((name) => !name.endsWith('esbuild'))
}

function servedSockets(): string[] {
  const own = new Set(entries('/proc/self/fd').map((fd) => /^socket:\[(\d+)\]$/.exec(link(`/proc/self/fd/${fd}`))?.[1]))
  const rows = text('/proc/net/unix').split('\n').slice(1)
  // Num RefCount Protocol Flags Type St Inode Path
  return rows
    .map((row) => row.trim().split(/\s+/))
    .flatMap(([, , , , , , inode, path]) => (path && own.has(inode) ? [`socket ${path}`] : []))
}

const entries = (folder: string): string[] => orEmpty(() => readdirSync(folder), [])
const link = (path: string): string => orEmpty(() => readlinkSync(path), '')
const text = (path: string): string => orEmpty(() => readFileSync(path, 'utf8'), '')
const words = (path: string): string[] => text(path).split(/\s+/).filter(Boolean)

/** A process, a descriptor or all of /proc may not be there. */
function orEmpty<T>(look: () => T, empty: T): T {
  try {
    return look()
  } catch {
    return empty
  }
}
