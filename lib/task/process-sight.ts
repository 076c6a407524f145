import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { uptime } from 'node:os'

/** What the system says of a process. A pid is used again; with its start it names one process since the machine's own start. */
export interface ProcessSight {
  pid: number
  /** As in /proc: `Z` is a zombie, `X` one that is just going. */
  state: string
  group: number
  /** Clock ticks since the machine started. */
  startTicks: number
}

/** How many ticks a second has, for whoever reads /proc: the same on every machine that Node runs on. */
const ticksPerSecond = 100

/** Now, on the clock of `startTicks`. It goes on while the machine sleeps, and nobody sets it. */
export function ticksNow(): number {
  return Math.floor(uptime() * ticksPerSecond)
}

/** Nothing where there is no such process, or the system does not say. Asks no disk, so that it can be done in one turn. */
export function seeProcess(pid: number): ProcessSight | undefined {
  try {
    return readStat(pid, readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return undefined
  }
}

export function isSameProcess(a: ProcessSight | undefined, b: Pick<ProcessSight, 'pid' | 'startTicks'>): boolean {
  return a?.pid === b.pid && a.startTicks === b.startTicks
}

/** Neither a zombie nor just going. */
export function isAlive({ state }: Pick<ProcessSight, 'state'>): boolean {
  return state !== 'Z' && state !== 'X'
}

/** How many files are open at a time while the list is read. */
const readers = 32

/** Every process there is; none where the system does not list them. The list is no picture of one moment. */
export async function listProcesses(): Promise<ProcessSight[]> {
  if (process.platform !== 'linux') return []
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found: ProcessSight[] = []
  for (let at = 0; at < pids.length; at += readers) {
    const some = await Promise.all(pids.slice(at, at + readers).map(lookAt))
    found.push(...some.filter((one) => one !== undefined))
  }
  return found
}

async function lookAt(pid: number): Promise<ProcessSight | undefined> {
  try {
    return readStat(pid, await readFile(`/proc/${pid}/stat`, 'latin1'))
  } catch (failure) {
    const { code = '' } = failure as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw failure
  }
}

/** Fields of /proc/<pid>/stat: pid (name) state parent group …, where the name may have spaces and brackets in it; the 22nd is the start. */
function readStat(pid: number, line: string): ProcessSight {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return { pid, state: fields[0] ?? '', group: Number(fields[2]), startTicks: Number(fields[19]) }
}
