import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs'
import { needs } from './needs.js'

/**
 * A suite with FUSE mounts in it. Where the kernel has no FUSE there is no such suite, and that is said; without root it is skipped.
 */
export function describeWithFuse(title: string, suite: () => void): void {
  if (process.platform === 'linux' && !existsSync('/dev/fuse')) {
    process.stdout.write(`  left out, as there is no /dev/fuse: ${title}\n`)
    return
  }
  describe(title, () => {
    before(function () {
      needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    })
    suite()
  })
}

/**
 * A mount that does not answer: whoever looks at it waits. Such a one can be killed, with `killable: false` not even that. It is this
 * process that would have to answer, so never touch it from here. Its end makes it stale, and then unmounts it.
 */
export function hungMount(directory: string, { killable = true } = {}): FuseMount {
  return new FuseMount(directory, killable ? 'nothing' : 'init')
}

/** A mount whose daemon has died: everything is ENOTCONN. */
export function staleMount(directory: string): FuseMount {
  const mount = new FuseMount(directory, 'nothing')
  mount.die()
  return mount
}

/** A mount that works, as an empty directory the kernel need not ask about twice; nobody but `uid` may look into it. */
export function liveMount(directory: string, uid = 0): FuseMount {
  return new FuseMount(directory, 'all', uid)
}

/** Where the kernel sends its questions, and what of it matters here (linux/fuse.h). */
const operations = { forget: 2, getattr: 3, statfs: 17, init: 26, interrupt: 36, batchForget: 42 }
const unanswered = [operations.forget, operations.interrupt, operations.batchForget]
const ENOSYS = 38
const requestBytes = 16_384

/** A FUSE file system served by this process, in which there is only its root. */
export class FuseMount implements Disposable {
  readonly #directory: string
  readonly #answers: 'nothing' | 'init' | 'all'
  readonly #device = openSync('/dev/fuse', constants.O_RDWR | constants.O_NONBLOCK)
  readonly #timer: NodeJS.Timeout | undefined
  #alive = true
  #takeNext: () => void = () => undefined
  /** Resolves when somebody has asked something and waits for the answer; never where nothing is read. */
  readonly asked = new Promise<void>((resolve) => (this.#takeNext = resolve))

  constructor(directory: string, answers: 'nothing' | 'init' | 'all', uid = 0) {
    this.#directory = directory
    this.#answers = answers
    const options = `fd=3,rootmode=40000,user_id=${uid},group_id=${uid}`
    try {
      execFileSync('mount', ['-i', '-t', 'fuse', '-o', options, 'dead', directory], {
        stdio: ['ignore', 'pipe', 'pipe', this.#device],
      })
    } catch (failure) {
      closeSync(this.#device)
      throw failure
    }
    // Node polls no character device by itself.
    if (answers !== 'nothing') this.#timer = setInterval(() => this.#serve(), 2)
  }

  /** Ends what serves it. */
  die(): void {
    if (!this.#alive) return
    this.#alive = false
    clearInterval(this.#timer)
    closeSync(this.#device)
  }

  [Symbol.dispose](): void {
    this.die()
    execFileSync('umount', ['-l', this.#directory], { stdio: 'pipe' })
  }

  #serve(): void {
    const request = Buffer.alloc(requestBytes)
    for (;;) {
      try {
        readSync(this.#device, request)
      } catch {
        return // nothing to read yet; or nobody is there any more
      }
      const operation = request.readUInt32LE(4)
      if (operation !== operations.init) this.#takeNext()
      if (unanswered.includes(operation) || (operation !== operations.init && this.#answers !== 'all')) continue
      const body = reply(operation)
      const head = Buffer.alloc(16)
      head.writeUInt32LE(head.length + (body?.length ?? 0), 0)
      head.writeInt32LE(body ? 0 : -ENOSYS, 4)
      request.copy(head, 8, 8, 16)
      try {
        writeSync(this.#device, Buffer.concat([head, body ?? Buffer.alloc(0)]))
      } catch {
        // who asked was killed meanwhile
      }
    }
  }
}

function reply(operation: number): Buffer | undefined {
  switch (operation) {
    case operations.init: {
      const init = Buffer.alloc(64)
      init.writeUInt32LE(7, 0) // version 7.31
      init.writeUInt32LE(31, 4)
      init.writeUInt32LE(4_096, 20) // longest write
      return init
    }
    case operations.getattr: {
      const attributes = Buffer.alloc(104)
      attributes.writeBigUInt64LE(3_600n, 0) // seconds they are good for
      attributes.writeBigUInt64LE(1n, 16) // inode
      attributes.writeUInt32LE(0o40_755, 76) // mode
      attributes.writeUInt32LE(2, 80) // links
      return attributes
    }
    case operations.statfs:
      return Buffer.alloc(80)
    default:
      return undefined
  }
}
