import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { PlugstreamError } from '../errors.js'

/**
 * What the looking process does. `lstat` alone is no proof of life, since the kernel may answer it from what it knows. `statfs` always
 * asks the file system, needs no right to read, opens no device, and leaves nothing open that would keep a driver from unmounting; to
 * open the directory would do all of that. Its errors count only where they say that nobody is there: some drivers lack the call.
 */
const program = `
const { lstatSync, statfsSync, writeSync } = require('fs')
const [, path, ...dead] = process.argv
const kinds = { directory: 'isDirectory', file: 'isFile', block: 'isBlockDevice', symlink: 'isSymbolicLink' }
const found = {}
try {
  const stat = lstatSync(path)
  found.kind = Object.keys(kinds).find((kind) => stat[kinds[kind]]()) || 'other'
  if (found.kind !== 'symlink') statfsSync(path)
} catch ({ code, message }) {
  if (!found.kind || dead.includes(code)) Object.assign(found, { code, message })
}
writeSync(1, JSON.stringify(found))
`

/** What a file system answers that has lost its daemon, its server or its disk. */
export const deadCodes: readonly string[] = [
  'ENOTCONN',
  'ECONNABORTED',
  'ESTALE',
  'EIO',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ETIMEDOUT',
  'ENODEV',
  'ESHUTDOWN',
]

/** What is at a path, or the error that was met there. */
export interface Found {
  kind?: 'directory' | 'file' | 'block' | 'symlink' | 'other'
  code?: string
  message?: string
}

/**
 * One process that looks at one path. It is Node, as that is there and tells errors by their codes, where `stat` has words that differ
 * by C library; it takes some 40 ms. When time is over it is killed, and from then on it does not keep this process alive.
 */
export class PathLook {
  /** Undefined: no answer in time. Rejects with ERR_MOUNT where the process did not do its work, and with what it was ended with. */
  readonly found: Promise<Found | undefined>
  /** Resolves when the process has ended, or time is over. */
  readonly over: Promise<void>
  /** Resolves when the process has ended, which the kernel may not let it. */
  readonly gone: Promise<void>
  /** Ends it early: `found` rejects with `reason` at once. */
  readonly end: (reason: Error) => void
  #silent = false

  /** @throws what `spawn` throws. */
  constructor(path: string, timeoutMs: number) {
    // NODE_OPTIONS is for this process: it may load what takes long, or what is not found from elsewhere.
    const child = spawn(process.execPath, ['-e', program, path, ...deadCodes], {
      cwd: '/',
      env: { ...process.env, NODE_OPTIONS: undefined },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const stdout = child.stdout as Readable | undefined // there is none where descriptors have run out
    let answer = ''
    stdout?.setEncoding('utf8').on('data', (text: string) => (answer += text))
    let failure: Error | undefined
    child.on('error', (error) => (failure = error))

    this.gone = new Promise((resolve) => child.once('close', () => resolve()))
    this.over = new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#silent = true
        child.kill('SIGKILL')
        child.unref()
        stdout?.destroy()
        resolve()
      }, timeoutMs)
      void this.gone.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    let reject: (reason: Error) => void = () => undefined
    const ended = new Promise<never>((_, rejectEnded) => (reject = rejectEnded))
    this.end = (reason) => {
      reject(reason)
      child.kill('SIGKILL')
    }
    this.found = Promise.race([this.over.then(() => (this.#silent ? undefined : read(path, answer, failure))), ended])
  }

  /** Its time is over, and it was killed. */
  get silent(): boolean {
    return this.#silent
  }
}

function read(path: string, answer: string, failure: Error | undefined): Found {
  try {
    if (failure) throw failure
    return JSON.parse(answer) as Found
  } catch (cause) {
    throw PlugstreamError.from(cause, 'ERR_MOUNT', `looking at ${path} in a process of its own`, { retryable: true })
  }
}
