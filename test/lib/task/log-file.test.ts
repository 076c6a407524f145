import { once } from 'node:events'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { LogFile, taskLogPaths } from '../../../lib/task/log-file.js'

describe('log file', () => {
  let directory: string
  let path: string
  const opened: LogFile[] = []
  const open = async (at: string | undefined, maxBytes: number): Promise<LogFile> => {
    const file = await LogFile.open(at, maxBytes)
    opened.push(file)
    return file
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
    path = join(directory, 'alloc', 'task.stdout.log')
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((file) => file.close()))
    rmSync(directory, { recursive: true })
  })

  /** Writes as a task does: through the descriptor it was given, from a process of its own. */
  async function write(file: LogFile, text: string): Promise<void> {
    await once(
      spawn('/bin/sh', ['-c', 'printf %s "$1"', 'sh', text], { stdio: ['ignore', file.fd, 'inherit'] }),
      'exit',
    )
  }

  it('is made for its owner alone, with the directories it is in', async () => {
    await open(path, 100)
    expect(statSync(path).mode & 0o777).to.equal(0o600)
    expect(statSync(join(directory, 'alloc')).mode & 0o777).to.equal(0o700)
  })

  it('is appended to, over several openings', async () => {
    await write(await open(path, 100), 'one ')
    await write(await open(path, 100), 'two ')
    expect(readFileSync(path, 'utf8')).to.equal('one two ')
  })

  it('is left alone up to its size', async () => {
    const file = await open(path, 10)
    await write(file, '0123456789')
    await file.trim()
    expect(readFileSync(path, 'utf8')).to.equal('0123456789')
    expect(existsSync(`${path}.1`)).to.be.false
  })

  it('is copied and cut when it is longer, while a task goes on writing at its new end', async () => {
    const file = await open(path, 10)
    await write(file, 'older words')
    await file.trim()
    await write(file, 'newer')
    expect(readFileSync(`${path}.1`, 'utf8')).to.equal('lder words')
    expect(readFileSync(path, 'utf8')).to.equal('newer')
    expect(await file.tail(100)).to.equal('lder wordsnewer')
    expect(await file.tail(7)).to.equal('dsnewer')
    expect(statSync(`${path}.1`).mode & 0o777).to.equal(0o600)
  })

  it('keeps one older part, the last', async () => {
    const file = await open(path, 4)
    for (const text of ['first', 'second', 'third', 'new']) {
      await write(file, text)
      await file.trim()
    }
    expect(readFileSync(`${path}.1`, 'utf8')).to.equal('hird')
    expect(readFileSync(path, 'utf8')).to.equal('new')
  })

  it('is trimmed when it is opened', async () => {
    await open(path, 100)
    writeFileSync(path, 'x'.repeat(200_000))
    const file = await open(path, 150_000)
    expect(statSync(path).size).to.equal(0)
    expect(statSync(`${path}.1`).size).to.equal(150_000)
    expect(await file.tail(200_000)).to.have.length(150_000)
  })

  it('joins a trim in flight', async () => {
    const file = await open(path, 1)
    appendFileSync(path, 'twice')
    await Promise.all([file.trim(), file.trim()])
    expect(readFileSync(`${path}.1`, 'utf8')).to.equal('e')
    expect(statSync(path).size).to.equal(0)
  })

  it('is cut also where the older part cannot be kept: a full disk is what it is for', async () => {
    const file = await open(path, 4)
    await write(file, 'too long')
    mkdirSync(`${path}.1`)
    const failure: unknown = await file.trim().catch((thrown: unknown) => thrown)
    expect(failure).to.have.property('code', 'EISDIR')
    expect(statSync(path).size).to.equal(0)
  })

  it('has no name where it was given none, leaves nothing behind, and works the same', async () => {
    const { TMPDIR } = process.env
    process.env['TMPDIR'] = directory
    try {
      const file = await open(undefined, 10)
      await write(file, 'older words')
      await file.trim()
      await write(file, 'newer')
      expect(await file.tail(100)).to.equal('lder wordsnewer')
    } finally {
      if (TMPDIR === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = TMPDIR
    }
    expect(readdirSync(directory)).to.deep.equal([])
  })

  it('opens also where the older part cannot be kept', async () => {
    await open(path, 100)
    writeFileSync(path, 'too long')
    mkdirSync(`${path}.1`)
    const file = await open(path, 4)
    await write(file, 'new')
    expect(readFileSync(path, 'utf8')).to.equal('new')
  })

  it('closes twice, and in the middle of a trim; then its tail is empty, and it is trimmed no more', async () => {
    const file = await open(path, 4)
    await write(file, 'too long')
    await Promise.all([file.trim(), file.close(), file.close()])
    expect(statSync(path).size).to.equal(0)
    expect(await file.tail(100)).to.equal('')
    appendFileSync(path, 'too long')
    await file.trim()
    expect(statSync(path).size).to.equal(8)
  })

  it('is named for its task, whatever that is called', () => {
    expect(taskLogPaths('/l', { allocId: 'ebs-1', taskName: 'driver' })).to.deep.equal({
      stdout: '/l/ebs-1/driver.stdout.log',
      stderr: '/l/ebs-1/driver.stderr.log',
    })
    const odd = ['..', '.', '../../etc/x', 'a/b', '\0', 'x'.repeat(400), 'A', 'a', 'ü']
    const paths = odd.map((allocId) => taskLogPaths('/l', { allocId, taskName: allocId }).stdout)
    expect(new Set(paths)).to.have.length(odd.length)
    for (const one of paths) expect(one).to.match(/^\/l\/[^/.][^/]{0,150}\/[^/]{1,150}\.stdout\.log$/)
  })
})
