import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { KeyvSqlite } from '@keyv/sqlite'
import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { pathState, type PathState } from '../../../lib/volume/path-state.js'
import { describeWithFuse, hungMount, liveMount, staleMount, type FuseMount } from '../../support/dead-mounts.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { needs } from '../../support/needs.js'
import { Scratch } from '../../support/sockets.js'
import { program, source } from '../store/scratch.js'

const state = async (path: string, timeoutMs?: number): Promise<PathState> =>
  (await pathState(path, timeoutMs === undefined ? {} : { timeoutMs })).state

const failure = (look: Promise<unknown>): Promise<PlugstreamError> =>
  look.then(
    (found) => expect.fail(`found ${JSON.stringify(found)}`),
    (thrown: unknown) => thrown as PlugstreamError,
  )

const children = async (): Promise<string[]> => (await inUse()).filter((one) => one.startsWith('child'))

describe('the state of a path', () => {
  let scratch: Scratch
  beforeEach(() => {
    scratch = new Scratch()
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('says what is there', async () => {
    writeFileSync(scratch.file('file'), '')
    symlinkSync('.', scratch.file('link'))
    symlinkSync('nowhere', scratch.file('dangling'))
    execFileSync('mkfifo', [scratch.file('pipe')])
    expect(await pathState(scratch.path)).to.deep.equal({ state: 'directory', description: 'a directory' })
    expect(await state(scratch.file('file'))).to.equal('file')
    expect(await state(scratch.file('link'))).to.equal('symlink')
    expect(await state(scratch.file('dangling'))).to.equal('symlink')
    expect(await state(scratch.file('pipe'))).to.equal('other')
  })

  it('knows a block device, and does not open it', async function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may make a device')
    execFileSync('mknod', [scratch.file('device'), 'b', '240', '0']) // of no driver, so that opening fails
    expect(await state(scratch.file('device'))).to.equal('block')
  })

  it('is missing where nothing is, nor can be', async () => {
    writeFileSync(scratch.file('file'), '')
    expect((await pathState(scratch.file('nothing'))).description).to.contain('ENOENT')
    expect(await state(scratch.file('nothing'))).to.equal('missing')
    expect(await state(scratch.file('file/below'))).to.equal('missing')
    expect(await state(scratch.file('x'.repeat(300)))).to.equal('missing')
    expect(await state(scratch.file('x/'.repeat(3_000)))).to.equal('missing')
  })

  it('is found by any name a path can have', async () => {
    const names = ['a b', 'line\nline', 'tab\t', 'back\\slash', '"quoted" \'twice\'', '-e', '--', '日本語 🚀 é', '$(x)']
    for (const name of names) mkdirSync(scratch.file(name))
    const states = await Promise.all(names.map((name) => state(scratch.file(name))))
    expect(states).to.deep.equal(names.map(() => 'directory'))
  })

  it('is found by a path as long as a path can be', async () => {
    const step = `/${'d'.repeat(200)}`
    const rest = 4_095 - Buffer.byteLength(scratch.path)
    const path = scratch.path + step.repeat(Math.floor(rest / step.length) - 1) + `/${'e'.repeat(150)}`
    const longest = `${path}/${'f'.repeat(4_095 - Buffer.byteLength(path) - 1)}`
    mkdirSync(longest, { recursive: true })
    expect(await state(longest)).to.equal('directory')
    expect(await state(`${longest}f`)).to.equal('missing')
  })

  it('cannot be told of links that lead in a circle, and says so', async () => {
    symlinkSync('circle', scratch.file('circle'))
    const { code, retryable, message } = await failure(pathState(scratch.file('circle/below')))
    expect({ code, retryable }).to.deep.equal({ code: 'ERR_MOUNT', retryable: false })
    expect(message).to.contain('ELOOP').and.contain(scratch.path)
  })

  it('is looked at without what NODE_OPTIONS would load', async () => {
    const before = process.env['NODE_OPTIONS']
    process.env['NODE_OPTIONS'] = '--require /nowhere/hook.cjs'
    try {
      expect(await state(scratch.path)).to.equal('directory')
    } finally {
      if (before === undefined) delete process.env['NODE_OPTIONS']
      else process.env['NODE_OPTIONS'] = before
    }
  })

  for (const [what, path] of [
    ['cannot be started', '/nowhere/node'],
    ['ends without an answer', '/bin/false'],
  ] as const)
    it(`is not made up where the process that looks ${what}`, async () => {
      const before = process.execPath
      process.execPath = path
      try {
        const { code, retryable, cause } = await failure(pathState(scratch.path))
        expect({ code, retryable }).to.deep.equal({ code: 'ERR_MOUNT', retryable: true })
        expect(cause).to.be.an('error')
      } finally {
        process.execPath = before
      }
    })

  it('is asked for an absolute path and a time', async () => {
    for (const path of ['', 'relative', './here', '-c', '/with\0zero'])
      expect((await failure(pathState(path))).code).to.equal('ERR_OPTION_INVALID')
    for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 31])
      expect((await failure(pathState('/', { timeoutMs }))).code).to.equal('ERR_OPTION_INVALID')
  })

  it('is told to many at once by one process a path, and eight over all', async () => {
    const before = await children()
    const same = Array.from({ length: 3 }, () => state(scratch.path))
    expect(await most(before, same)).to.equal(1)
    expect(await Promise.all(same)).to.deep.equal(same.map(() => 'directory'))
    const others = Array.from({ length: 12 }, (_, at) => state(scratch.file(`${at}`)))
    expect(await most(before, others)).to.be.within(1, 8)
    expect(await Promise.all(others)).to.deep.equal(others.map(() => 'missing'))
    expect(await leftNow(before)).to.deep.equal([])
  })

  it('starts nothing when nobody waits any more', async () => {
    const before = await children()
    const { code } = await failure(pathState('/', { signal: AbortSignal.abort() }))
    expect(code).to.equal('ERR_ABORTED')
    expect(await leftNow(before)).to.deep.equal([])
  })
})

/** The children that were not there `before`. */
const leftNow = async (before: readonly string[]): Promise<string[]> =>
  (await children()).filter((child) => !before.includes(child))

/** How many children there were at a time, at most: at the beginning of `work`, and whenever some of it was done. */
async function most(before: readonly string[], work: readonly Promise<unknown>[]): Promise<number> {
  const counts = [Promise.resolve(), ...work].map(async (done) => {
    await done
    return (await leftNow(before)).length
  })
  return Math.max(...(await Promise.all(counts)))
}

/** Looks until a look is in the hands of the file system, from where it cannot be killed. The machine may be slow to get there. */
async function stuckLook(path: string, { asked }: FuseMount): Promise<void> {
  for (let stuck = false, timeoutMs = 250; !stuck; timeoutMs *= 2) {
    const look = state(path, timeoutMs)
    stuck = await Promise.race([asked.then(() => true), look.then(() => false)])
    expect(await look).to.equal('hung')
  }
}

describeWithFuse('the state of a path on a dead file system', () => {
  let scratch: Scratch
  let directory: string
  beforeEach(() => {
    scratch = new Scratch()
    directory = scratch.file('m')
    mkdirSync(directory)
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('is stale when its daemon has died', async () => {
    using _mount = staleMount(directory)
    const { state: found, description } = await pathState(directory)
    expect(found).to.equal('stale')
    expect(description).to.contain('ENOTCONN')
    expect(await state(`${directory}/below`)).to.equal('stale')
  })

  it('is stale also where the kernel still answers for the dead daemon', async () => {
    using mount = liveMount(directory)
    expect(await state(directory)).to.equal('directory')
    mount.die()
    const known = execFileSync('stat', ['--format', '%F', directory], { timeout: 10_000, killSignal: 'SIGKILL' })
    expect(known.toString()).to.equal('directory\n')
    expect(await state(directory)).to.equal('stale')
  })

  it('is denied where even root may not look', async () => {
    using _mount = liveMount(directory, 65_534)
    expect(await state(directory)).to.equal('denied')
  })

  it('is hung where nobody answers, and leaves no process and no timer', async () => {
    const before = await inUse()
    using _mount = hungMount(directory)
    const found = await pathState(directory, { timeoutMs: 300 })
    expect(found).to.deep.equal({ state: 'hung', description: 'no answer within 300 ms' })
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('can be told again as soon as the mount is another', async () => {
    for (let round = 0; round < 3; round++) {
      using mount = hungMount(directory)
      expect(await state(directory, 100)).to.equal('hung')
      mount.die()
      expect(await state(directory)).to.equal('stale')
    }
    expect(await state(directory)).to.equal('directory')
  })

  it('is not looked at again while a process that cannot be killed still looks', async () => {
    const before = await inUse()
    using mount = hungMount(directory, { killable: false })
    await stuckLook(directory, mount)
    const stuck = await leftNow(before)
    expect(stuck).to.have.length(1)

    const second = await pathState(directory)
    expect(second).to.deep.equal({ state: 'hung', description: 'an earlier look has not come back yet' })
    expect(await leftNow(before)).to.deep.equal(stuck)

    mount.die()
    expect(await state(directory)).to.equal('stale')
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('starts no more than eight processes that cannot be killed', async () => {
    const before = await inUse()
    const mounts: FuseMount[] = []
    try {
      const looks = Array.from({ length: 8 }, (_, at) => {
        const path = scratch.file(`m${at}`)
        mkdirSync(path)
        mounts.push(hungMount(path, { killable: false }))
        return stuckLook(path, mounts[at]!)
      })
      await Promise.all(looks)
      expect(await failure(pathState(scratch.path))).to.deep.include({ code: 'ERR_MOUNT', retryable: true })
      expect(await leftNow(before)).to.have.length(8)

      mounts[0]!.die()
      expect(await state(scratch.path)).to.equal('directory')
    } finally {
      for (const mount of mounts) mount[Symbol.dispose]()
    }
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('is what was there after the call, whatever a look finds that began before', async () => {
    const mount = hungMount(directory, { killable: false })
    const early = state(directory, 60_000)
    await mount.asked.finally(() => mount[Symbol.dispose]())
    expect(await state(directory)).to.equal('directory')
    expect(await early).to.equal('stale')
  })

  it('leaves files and SQLite of this process alone while more looks hang than libuv has threads', async () => {
    const before = await inUse()
    using _mount = hungMount(directory)
    const stop = new AbortController()
    const ended: string[] = []
    const looks = Array.from({ length: 6 }, async (_, at) => {
      const { code } = await failure(pathState(`${directory}/${at}`, { signal: stop.signal, timeoutMs: 60_000 }))
      ended.push(code)
    })
    writeFileSync(scratch.file('file'), 'read')
    expect(await readFile(scratch.file('file'), 'utf8')).to.equal('read')
    const sqlite = new KeyvSqlite(`sqlite://${scratch.file('db.sqlite')}`)
    await sqlite.set('key', 'kept')
    expect(await sqlite.get('key')).to.equal('kept')
    await sqlite.disconnect()

    expect(ended).to.deep.equal([])
    stop.abort()
    await Promise.all(looks)
    expect(ended).to.deep.equal(looks.map(() => 'ERR_ABORTED'))
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('ends its process when nobody waits any more, and the next look is not told of it', async () => {
    const before = await inUse()
    using mount = hungMount(directory)
    const stop = new AbortController()
    const early = failure(pathState(directory, { signal: stop.signal, timeoutMs: 60_000 }))
    const late = failure(pathState(directory, { signal: stop.signal }))
    const other = state(directory, 60_000)
    const cause = new Error('enough')
    stop.abort(cause)
    expect(await early).to.deep.include({ code: 'ERR_ABORTED', cause })
    expect(await late).to.deep.include({ code: 'ERR_ABORTED' })
    mount.die()
    expect(await other).to.equal('stale')
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('does not keep a process that was told from ending', async () => {
    using _mount = hungMount(directory, { killable: false })
    const told = program(`
      import { pathState } from ${source('lib/volume/path-state.ts')}
      for (let timeoutMs = 250; timeoutMs <= 4_000; timeoutMs *= 2) await pathState(${JSON.stringify(directory)}, { timeoutMs })
      console.log((await pathState(${JSON.stringify(directory)})).description)
    `)
    const ended = told.ended()
    expect(await told.line()).to.equal('an earlier look has not come back yet')
    await ended
  })
})
