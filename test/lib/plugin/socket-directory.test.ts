import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect } from 'chai'
import type { DirectorySight } from '../../../lib/plugin/socket.js'
import { watchSockets } from '../../../lib/plugin/socket-directory.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { needs } from '../../support/needs.js'
import { asNobody, Scratch, staleSocket, youngerThan } from '../../support/sockets.js'

/** Longer than any test may take: what is told, is told by events alone. */
const never = 600_000

/** What was seen last, and the way to wait for more. */
class Sights implements Disposable {
  all: DirectorySight[] = []
  readonly #stop: () => void
  #wake: () => void = () => undefined

  constructor(
    private readonly directory: string,
    statIntervalMs = never,
  ) {
    const told = (sight: DirectorySight): void => {
      this.all.push(sight)
      this.#wake()
    }
    this.#stop = watchSockets(directory, told, { statIntervalMs })
  }

  /** The names of the sockets that were seen last. */
  get names(): string[] | undefined {
    return this.all.at(-1)?.sockets.map(({ socketPath }) => relative(this.directory, socketPath))
  }

  /** Waits until these sockets, and no other, are seen. */
  async until(...names: string[]): Promise<DirectorySight> {
    for (;;) {
      const sight = this.all.at(-1)
      if (sight && this.names?.join() === names.join()) return sight
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** What is seen next. */
  async next(): Promise<DirectorySight | undefined> {
    await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.all.at(-1)
  }

  stop(): void {
    this.#stop()
  }

  [Symbol.dispose](): void {
    this.#stop()
  }
}

describe('watchSockets', () => {
  let scratch: Scratch
  let directory: string
  let path: (name: string) => string
  beforeEach(() => {
    scratch = new Scratch()
    directory = scratch.file('r')
    path = (name) => `${directory}/${name}`
    mkdirSync(directory)
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('tells what is there first, though not in the call, then what comes and goes', async () => {
    await staleSocket(path('a'))
    using sights = new Sights(directory)
    expect(sights.all).to.deep.equal([])
    await sights.until('a')
    await staleSocket(path('b'))
    await sights.until('a', 'b')
    unlinkSync(path('a'))
    await sights.until('b')
    expect(sights.all.every(({ unseen }) => unseen.length === 0)).to.equal(true)
  })

  it('tells a socket that is renamed in, within, and away', async () => {
    await staleSocket(scratch.file('a'))
    using sights = new Sights(directory)
    await sights.until()
    renameSync(scratch.file('a'), path('a'))
    await sights.until('a')
    renameSync(path('a'), path('b'))
    await sights.until('b')
    renameSync(path('b'), scratch.file('a'))
    await sights.until()
  })

  it('tells another socket in the place of one by another identity', async () => {
    await staleSocket(path('a'))
    using sights = new Sights(directory)
    const first = await sights.until('a')
    await youngerThan(path('a'))
    await staleSocket(scratch.file('b'))
    renameSync(scratch.file('b'), path('a'))
    expect(await sights.next()).not.to.deep.equal(first)
    expect(sights.names).to.deep.equal(['a'])
  })

  it('leaves alone what begins with a dot, and what is no socket', async () => {
    writeFileSync(path('file'), '')
    symlinkSync(path('file'), path('link'))
    symlinkSync(path('nothing'), path('loose'))
    mkdirSync(path('.hidden'))
    await staleSocket(path('.hidden/a'))
    await staleSocket(path('.a'))
    using sights = new Sights(directory)
    await sights.until()
    renameSync(path('.a'), path('a'))
    await sights.until('a')
  })

  it('takes a link to a socket for the socket, and sees when that is gone', async () => {
    await staleSocket(scratch.file('a'))
    symlinkSync(scratch.file('a'), path('a'))
    using sights = new Sights(directory)
    await sights.until('a')
    unlinkSync(scratch.file('a'))
    await sights.until()
  })

  it('looks into the directories right below, whenever they came, and no deeper', async () => {
    mkdirSync(path('s'))
    using sights = new Sights(directory)
    await sights.until()
    await staleSocket(path('s/a'))
    await sights.until('s/a')
    mkdirSync(scratch.file('t'))
    mkdirSync(scratch.file('t/deep'))
    await staleSocket(scratch.file('t/deep/c'))
    await staleSocket(scratch.file('t/b'))
    renameSync(scratch.file('t'), path('t'))
    await sights.until('s/a', 't/b')
    rmSync(path('s'), { recursive: true })
    await sights.until('t/b')
    await staleSocket(path('t/d'))
    await sights.until('t/b', 't/d')
  })

  it('goes on where the directory is removed and made again, or another one is moved into its place', async () => {
    await staleSocket(path('a'))
    using sights = new Sights(directory)
    await sights.until('a')
    for (let again = 0; again < 3; again++) {
      rmSync(directory, { recursive: true })
      await sights.until()
      mkdirSync(directory)
      await staleSocket(path('b'))
      await sights.until('b')
    }
    mkdirSync(scratch.file('other'))
    await staleSocket(scratch.file('other/c'))
    renameSync(directory, scratch.file('away'))
    renameSync(scratch.file('other'), directory)
    await sights.until('c')
    await staleSocket(path('d'))
    await sights.until('c', 'd')
  })

  it('waits for a directory that is not there yet', async () => {
    rmSync(directory, { recursive: true })
    using sights = new Sights(path('deep/er'))
    await sights.until()
    mkdirSync(path('deep/er'), { recursive: true })
    await staleSocket(path('deep/er/a'))
    await sights.until('a')
  })

  it('tells what cannot be looked at, and goes on with the rest', async () => {
    mkdirSync(path('s'))
    await staleSocket(path('s/a'))
    await staleSocket(path('b'))
    chmodSync(path('s'), 0)
    await asNobody(async () => {
      using sights = new Sights(directory, 50)
      const { unseen } = await sights.until('b')
      expect(unseen.map(({ path }) => path)).to.deep.equal([path('s')])
      expect(unseen[0]?.description).to.contain('EACCES')
    })
    chmodSync(path('s'), 0o700)
  })

  it('leaves another file system that is mounted below alone', async function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    mkdirSync(path('m'))
    execFileSync('mount', ['-t', 'tmpfs', 'none', path('m')])
    try {
      await staleSocket(path('m/a'))
      using sights = new Sights(directory)
      await sights.until()
      await staleSocket(path('b'))
      await sights.until('b')
    } finally {
      execFileSync('umount', [path('m')])
    }
  })

  it('ends up with the truth after a storm of changes', async () => {
    using sights = new Sights(directory)
    for (let at = 0; at < 50; at++) {
      await staleSocket(path(`s${at % 5}`))
      if (at % 2) unlinkSync(path(`s${at % 5}`))
    }
    const left = [0, 1, 2, 3, 4].map((at) => `s${at}`).filter((_, at) => (45 + at) % 2 === 0)
    await sights.until(...left)
  })

  it('tells nothing after it was stopped, and leaves nothing open', async () => {
    await staleSocket(path('a'))
    const before = await inUse()
    const sights = new Sights(directory)
    sights.stop()
    const others = new Sights(directory)
    await others.until('a')
    others.stop()
    await staleSocket(path('b'))
    expect([sights.all, others.all.length]).to.deep.equal([[], 1])
    expect(await leftSince(before)).to.deep.equal([])
  })
})
