import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { SocketSight } from '../../../lib/plugin/socket.js'
import { watchSocket } from '../../../lib/plugin/socket-watch.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { needs } from '../../support/needs.js'
import { asNobody, PlainServer, Scratch, staleSocket, youngerThan } from '../../support/sockets.js'

/** Longer than any test may take: what is told, is told by events alone. */
const never = 600_000

/** What was seen so far, and the way to wait for more. */
class Sights implements Disposable {
  readonly all: SocketSight[] = []
  readonly #stop: () => void
  #wake: () => void = () => undefined

  constructor(path: string, statIntervalMs = never) {
    const told = (sight: SocketSight): void => {
      this.all.push(sight)
      this.#wake()
    }
    this.#stop = watchSocket(path, told, { statIntervalMs })
  }

  get kinds(): string[] {
    return this.all.map((sight) => sight.kind)
  }

  /** The next sight after the first `count`. */
  async after(count: number): Promise<SocketSight> {
    for (;;) {
      const sight = this.all[count]
      if (sight) return sight
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async until(kind: SocketSight['kind']): Promise<SocketSight> {
    for (let at = this.all.length; ; at++) {
      const sight = await this.after(at)
      if (sight.kind === kind) return sight
    }
  }

  [Symbol.dispose](): void {
    this.#stop()
  }
}

describe('watchSocket', () => {
  let scratch: Scratch
  let path: string
  beforeEach(() => {
    scratch = new Scratch()
    mkdirSync(scratch.file('d'))
    path = scratch.file('d/csi.sock')
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('tells the present sight first, though not in the call', async () => {
    await using _server = await PlainServer.listen(path)
    using sights = new Sights(path)
    expect(sights.all).to.eql([])
    expect((await sights.after(0)).kind).to.equal('socket')
  })

  it('tells that a socket came and went', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    await using server = await PlainServer.listen(path)
    await sights.after(1)
    await server[Symbol.asyncDispose]()
    await sights.after(2)
    expect(sights.kinds).to.eql(['missing', 'socket', 'missing'])
  })

  it('tells a socket that is moved into place', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    await staleSocket(path) // bound under another name, and renamed
    expect((await sights.after(1)).kind).to.equal('socket')
  })

  it('tells another server on the path by another identity', async () => {
    await staleSocket(path)
    using sights = new Sights(path)
    const first = await sights.after(0)
    await youngerThan(path)
    unlinkSync(path)
    await using _server = await PlainServer.listen(path)
    const second = await sights.until('socket')
    expect(second).not.to.eql(first)
  })

  it('tells another socket that is renamed over the first', async () => {
    await staleSocket(path)
    await youngerThan(path)
    await staleSocket(scratch.file('d/other'))
    using sights = new Sights(path)
    const first = await sights.after(0)
    renameSync(scratch.file('d/other'), path)
    expect(await sights.after(1)).not.to.eql(first)
    expect(sights.kinds).to.eql(['socket', 'socket'])
  })

  it('does not take a chmod after bind for another server', async () => {
    await using _server = await PlainServer.listen(path)
    using sights = new Sights(path)
    await sights.after(0)
    chmodSync(path, 0o600)
    chmodSync(path, 0o777)
    unlinkSync(path) // after which everything before has been looked at
    await sights.until('missing')
    expect(sights.kinds).to.eql(['socket', 'missing'])
  })

  it('tells a file that is no socket', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    writeFileSync(path, '')
    expect((await sights.after(1)).kind).to.equal('not-a-socket')
  })

  it('waits for a directory that is not there yet, however deep', async () => {
    const deep = scratch.file('x/y/z/csi.sock')
    using sights = new Sights(deep)
    await sights.until('missing')
    for (const part of ['x', 'x/y', 'x/y/z']) mkdirSync(scratch.file(part))
    await using _server = await PlainServer.listen(deep)
    expect((await sights.after(1)).kind).to.equal('socket')
  })

  it('goes on watching a directory that is removed and made again, any number of times', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    for (let round = 0; round < 3; round++) {
      await staleSocket(path)
      await sights.until('socket')
      rmSync(dirname(path), { recursive: true })
      await sights.until('missing')
      mkdirSync(dirname(path))
    }
    await staleSocket(path)
    await sights.until('socket')
  })

  it('goes on watching where another directory is moved into the place of the first', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    mkdirSync(scratch.file('new'))
    await staleSocket(scratch.file('new/csi.sock'))
    renameSync(scratch.file('d'), scratch.file('old'))
    renameSync(scratch.file('new'), scratch.file('d'))
    await sights.until('socket')
    unlinkSync(path)
    await sights.until('missing')
  })

  it('tells a socket that may not be looked at, and when it may again', async () => {
    await staleSocket(path)
    chmodSync(dirname(path), 0)
    await asNobody(async () => {
      using sights = new Sights(path, 50)
      expect((await sights.after(0)).kind).to.equal('denied')
      if (process.getuid?.() === 0) process.seteuid?.(0)
      chmodSync(dirname(path), 0o755)
      expect((await sights.after(1)).kind).to.equal('socket')
    })
  })

  it('follows a link to a socket, and sees what becomes of the socket', async () => {
    mkdirSync(scratch.file('elsewhere'))
    await staleSocket(scratch.file('elsewhere/real'))
    symlinkSync(scratch.file('elsewhere/real'), path)
    using sights = new Sights(path)
    expect((await sights.after(0)).kind).to.equal('socket')
    unlinkSync(scratch.file('elsewhere/real')) // no event in the directory that is watched
    expect((await sights.after(1)).kind).to.equal('missing')
  })

  it('tells nothing of what else is in the directory, and the same but once', async () => {
    using sights = new Sights(path)
    await sights.until('missing')
    for (let index = 0; index < 100; index++) writeFileSync(scratch.file(`d/${index}`), '')
    await staleSocket(path)
    await sights.until('socket')
    expect(sights.kinds).to.eql(['missing', 'socket'])
  })

  it('ends up with the truth after a storm of changes', async () => {
    using sights = new Sights(path)
    for (let round = 0; round < 50; round++) {
      await staleSocket(path)
      unlinkSync(path)
    }
    await staleSocket(path)
    if (sights.kinds.at(-1) !== 'socket') await sights.until('socket')
    rmSync(path)
    await sights.until('missing')
  })

  it('tells nothing after it was stopped, also in the middle of a look, and leaves nothing open', async () => {
    const before = await inUse()
    const told: string[] = []
    const stop = watchSocket(path, ({ kind }) => told.push(kind))
    stop()
    expect(await leftSince(before)).to.eql([])
    const stopAtFirst = watchSocket(path, ({ kind }) => {
      told.push(kind)
      stopAtFirst()
    })
    using sights = new Sights(path)
    await sights.until('missing')
    sights[Symbol.dispose]()
    sights[Symbol.dispose]()
    expect(await leftSince(before)).to.eql([])
    expect(told).to.eql(['missing'])
  })

  it('looks by the clock, and quicker, where the system has no watch left', async function () {
    const limited = await run(['0'])
    needs(this, limited.ok, `a user namespace with no inotify watches cannot be made: ${limited.why}`)
    expect(limited.sights).to.eql(['missing', 'socket', 'missing'])
  })
})

/** Watches in a process of its own, for which the system has so many inotify watches. */
async function run([watches]: readonly [string]): Promise<{ ok: boolean; why: string; sights: string[] }> {
  const program = fileURLToPath(new URL('./deaf-watch.ts', import.meta.url))
  const shell = `echo ${watches} > /proc/sys/user/max_inotify_watches && exec "$0" --import tsx/esm "$1"`
  const child = spawn('unshare', ['--user', '--map-root-user', 'sh', '-c', shell, process.execPath, program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const sights: string[] = []
  let why = ''
  createInterface(child.stdout).on('line', (line) => sights.push(line))
  child.stderr.on('data', (text) => (why += String(text)))
  const [code] = (await once(child, 'close').catch((failure: unknown) => [failure])) as [unknown]
  return { ok: code === 0, why: why || String(code), sights }
}
