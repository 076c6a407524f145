import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { PlugstreamError } from '../errors.js'
import { openSqlite } from './sqlite-file.js'
import { isBusy, writeFailed } from './store-error.js'

/** A held lock. */
export interface StateLock {
  /** Idempotent; a second call joins the first. */
  release(): Promise<void>
}

interface Holder {
  pid: number
  host: string
  /** When the process began, in words. */
  startedAt: string
}

type Adapter = Awaited<ReturnType<typeof openSqlite>>['adapter']

/** Opening a fresh lock file writes to it: those who open it at the same moment wait for one another this long, and try again so often. */
const busyTimeoutMs = 20
const patienceMs = 1_000

/**
 * Takes a state directory for one host. The lock is a write transaction that is held on `lock.sqlite`: the kernel frees it with the
 * process, however that ends. `lock.json` beside it says who holds it, for the message only.
 *
 * @throws ERR_STATE_LOCKED naming the holder, at once; within a second where the holder has not said yet who it is.
 * ERR_STORE_WRITE where the directory cannot be written.
 */
export async function lockStateDir(stateDir: string): Promise<StateLock> {
  const note = join(stateDir, 'lock.json')
  try {
    await mkdir(stateDir, { recursive: true, mode: 0o700 })
    const adapter = await take(stateDir, note)
    await writeFile(note, JSON.stringify(self())).catch(async (failure: unknown) => {
      await adapter.close()
      throw failure
    })
    let released: Promise<void> | undefined
    return { release: () => (released ??= rm(note, { force: true }).finally(() => adapter.close())) }
  } catch (cause) {
    throw writeFailed(`locking ${stateDir}`, cause)
  }
}

async function take(stateDir: string, note: string): Promise<Adapter> {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    const adapter = await tryLock(join(stateDir, 'lock.sqlite'))
    if (adapter) return adapter
    const holder = await readHolder(note)
    const known = holder !== undefined && isAlive(holder)
    if (known || performance.now() > giveUpAt) throw locked(stateDir, known ? holder : undefined)
    await pause(busyTimeoutMs)
  }
}

async function tryLock(file: string): Promise<Adapter | undefined> {
  try {
    return (await openSqlite({ file, busyTimeoutMs, table: 'lock' }, ['BEGIN IMMEDIATE'])).adapter
  } catch (failure) {
    if (isBusy(failure)) return undefined
    throw failure
  }
}

async function readHolder(note: string): Promise<Holder | undefined> {
  try {
    const holder = JSON.parse(await readFile(note, 'utf8')) as Holder
    return typeof holder.pid === 'number' ? holder : undefined
  } catch {
    return undefined // not written yet, or just being written
  }
}

/** One on another machine or in another container cannot be looked at, so its word is taken. */
function isAlive({ pid, host }: Holder): boolean {
  if (host !== hostname()) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (failure) {
    return (failure as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function self(): Holder {
  const startedAt = new Date(Date.now() - process.uptime() * 1_000).toISOString()
  return { pid: process.pid, host: hostname(), startedAt }
}

function locked(stateDir: string, holder: Holder | undefined): PlugstreamError {
  const who = holder
    ? `process ${holder.pid} on ${holder.host}, running since ${holder.startedAt}`
    : 'an unknown process'
  return new PlugstreamError('ERR_STATE_LOCKED', `${stateDir} is in use by ${who}`, {
    retryable: true,
    details: { stateDir, pid: holder?.pid, startedAt: holder?.startedAt },
  })
}
