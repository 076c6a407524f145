import { readlinkSync } from 'node:fs'
import { mkdtemp, mkdir, open, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { escapePathPart } from '../path-escape.js'
import type { TaskRef } from './task.js'

/** Where the process driver writes what a task says; the older part of each is beside it, with `.1` after its name. */
export interface TaskLogPaths {
  stdout: string
  stderr: string
}

/**
 * The log files of a task below a driver's `logDir`, by its names alone.
 *
 * @example taskLogPaths('/var/log/agent', { allocId: 'ebs-1', taskName: 'driver' }).stderr // /var/log/agent/ebs-1/driver.stderr.log
 */
export function taskLogPaths(logDir: string, task: TaskRef): TaskLogPaths {
  const stem = join(logDir, escapePathPart(task.allocId), escapePathPart(task.taskName))
  return { stdout: `${stem}.stdout.log`, stderr: `${stem}.stderr.log` }
}

/**
 * Opens the two log files of a task for who writes them in its place. `writtenAt`: when they were last written to, Unix ms; 0 where they
 * are new.
 */
export async function openTaskLogs(
  task: TaskRef,
  logDir: string | undefined,
  maxBytes: number,
): Promise<{ sinks: { stdout: LogFile; stderr: LogFile }; writtenAt: number }> {
  const paths = logDir === undefined ? undefined : taskLogPaths(logDir, task)
  const stats = await Promise.all(Object.values(paths ?? {}).map((path: string) => stat(path).catch(() => undefined)))
  const stdout = await LogFile.open(paths?.stdout, maxBytes)
  try {
    const stderr = await LogFile.open(paths?.stderr, maxBytes)
    return { sinks: { stdout, stderr }, writtenAt: Math.max(0, ...stats.map((found) => found?.mtimeMs ?? 0)) }
  } catch (failure) {
    await stdout.close()
    throw failure
  }
}

const chunkBytes = 65_536
const privateFile = 0o600

/**
 * A file that a task appends to by itself, so that its words need nobody to carry them and it can outlive its host. The host trims it:
 * what is older is copied beside it, then the file is cut to nothing, and the task goes on at its new end. What is written between
 * copy and cut is lost.
 */
export class LogFile {
  readonly #file: FileHandle
  readonly #path: string | undefined
  readonly #maxBytes: number
  #older: FileHandle | undefined
  #trimming: Promise<void> | undefined
  #closed: Promise<void> | undefined

  private constructor(file: FileHandle, path: string | undefined, maxBytes: number) {
    this.#file = file
    this.#path = path
    this.#maxBytes = maxBytes
  }

  /** Without a path the file has no name: it is gone with the last who holds it. */
  static async open(path: string | undefined, maxBytes: number): Promise<LogFile> {
    if (path !== undefined) await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = path === undefined ? await openUnnamed() : await open(path, 'a+', privateFile)
    const log = new LogFile(file, path, maxBytes)
    await log.trim().catch(() => undefined) // it is tried again; no task stays down for its old words
    return log
  }

  /**
   * The file that a process writes to, though it may have no name any more. A process can put any file in that place: nothing is given
   * but one of `outputs`, which are names as the system gives them.
   */
  static async ofProcess(
    pid: number,
    stream: 'stdout' | 'stderr',
    outputs: readonly string[],
    maxBytes: number,
  ): Promise<LogFile | undefined> {
    const file = await open(`/proc/${pid}/fd/${stream === 'stdout' ? 1 : 2}`, 'a+').catch(() => undefined)
    if (!file) return undefined
    const log = new LogFile(file, undefined, maxBytes)
    if (outputs.includes(log.systemName)) return log
    await log.close()
    return undefined
  }

  /** For the task to write to. */
  get fd(): number {
    return this.#file.fd
  }

  /** What the system calls it, whoever has it open. */
  get systemName(): string {
    return readlinkSync(`/proc/self/fd/${this.fd}`)
  }

  /** Writes for a task that cannot do so itself; nothing once closed. */
  async append(bytes: Uint8Array): Promise<void> {
    if (this.#closed) return
    await this.#file.appendFile(bytes)
    await this.trim()
  }

  /** Trims the file if it is over its size. Joins a trim in flight. */
  async trim(): Promise<void> {
    if (this.#closed) return
    this.#trimming ??= this.#trim().finally(() => (this.#trimming = undefined))
    await this.#trimming
  }

  async #trim(): Promise<void> {
    const { size } = await this.#file.stat()
    if (size <= this.#maxBytes) return
    try {
      this.#older ??= this.#path === undefined ? await openUnnamed() : await open(`${this.#path}.1`, 'a+', privateFile)
      await this.#older.truncate(0)
      await copyEnd(this.#file, this.#older, size, this.#maxBytes)
    } finally {
      await this.#file.truncate(0) // also where the disk is full: that is what it is for
    }
  }

  /** The last bytes as text, a character cut at the front left out; nothing once closed. */
  async tail(maxBytes: number): Promise<string> {
    if (this.#closed) return ''
    await this.#trimming
    const newer = await readEnd(this.#file, maxBytes)
    const older = this.#older ? await readEnd(this.#older, maxBytes - newer.length) : Buffer.alloc(0)
    return wholeCharacters(Buffer.concat([older, newer]))
  }

  /** Closes what the host holds; a task that writes to it goes on. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (this.#trimming ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => Promise.all([this.#file.close(), this.#older?.close()]))
      .then(() => undefined)
    return this.#closed
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const directory = await mkdtemp(join(tmpdir(), 'plugstream-'))
  const path = join(directory, 'log')
  try {
    const file = await open(path, 'a+', privateFile)
    await unlink(path)
    return file
  } finally {
    await rmdir(directory)
  }
}

async function copyEnd(from: FileHandle, to: FileHandle, size: number, maxBytes: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  for (let at = Math.max(0, size - maxBytes); at < size;) {
    const { bytesRead } = await from.read(buffer, 0, Math.min(chunkBytes, size - at), at)
    if (bytesRead === 0) return
    await to.appendFile(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
}

async function readEnd(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const { size } = await file.stat()
  const length = Math.min(size, Math.max(0, maxBytes))
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
  return buffer.subarray(0, bytesRead)
}

/** Without the rest of a UTF-8 character that begins before the bytes do: at most three bytes of 10xxxxxx. */
function wholeCharacters(bytes: Buffer): string {
  let start = 0
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return bytes.subarray(start).toString('utf8')
}
