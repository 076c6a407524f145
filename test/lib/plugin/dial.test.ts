import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { dial } from '../../../lib/plugin/dial.js'
import { inUse, leftSince } from '../../support/in-use.js'
import { asNobody, PlainServer, Scratch, staleSocket } from '../../support/sockets.js'

describe('dial', () => {
  let scratch: Scratch
  beforeEach(() => (scratch = new Scratch()))
  afterEach(() => scratch[Symbol.dispose]())

  it('connects to a server, and hangs up', async () => {
    await using server = await PlainServer.listen(scratch.file('a.sock'))
    const before = await inUse()
    expect(await dial(scratch.file('a.sock'))).to.eql({ kind: 'connected' })
    expect(await leftSince(before)).to.eql([])
    if (server.accepted === 0) await once(server.server, 'connection')
    expect(server.accepted).to.equal(1)
  })

  it('leaves none of two hundred connections open', async () => {
    await using server = await PlainServer.listen(scratch.file('a.sock'))
    await Promise.all(Array.from({ length: 200 }, () => dial(scratch.file('a.sock'))))
    while (server.accepted < 200 || server.open > 0) await new Promise(setImmediate)
  })

  it('finds nothing where nothing is, or a part of the path is missing or a file', async () => {
    writeFileSync(scratch.file('file'), '')
    for (const path of ['a.sock', 'b/a.sock', 'file/a.sock']) {
      expect((await dial(scratch.file(path))).kind, path).to.equal('missing')
    }
  })

  it('is refused by a socket that a dead process left behind', async () => {
    await staleSocket(scratch.file('a.sock'))
    expect((await dial(scratch.file('a.sock'))).kind).to.equal('refused')
  })

  it('tells a file and a directory from a socket, though the system refuses a connection all the same', async () => {
    writeFileSync(scratch.file('file'), '')
    mkdirSync(scratch.file('directory'))
    expect((await dial(scratch.file('file'))).kind).to.equal('not-a-socket')
    expect((await dial(scratch.file('directory'))).kind).to.equal('not-a-socket')
  })

  it('follows a link to a socket', async () => {
    await using _server = await PlainServer.listen(scratch.file('a.sock'))
    symlinkSync('a.sock', scratch.file('link'))
    expect(await dial(scratch.file('link'))).to.eql({ kind: 'connected' })
  })

  it('is denied where the socket may not be opened, or its directory not be entered', async () => {
    mkdirSync(scratch.file('closed'))
    await using _open = await PlainServer.listen(scratch.file('a.sock'))
    await using _hidden = await PlainServer.listen(scratch.file('closed/a.sock'))
    chmodSync(scratch.file('a.sock'), 0)
    chmodSync(scratch.file('closed'), 0)
    expect((await asNobody(() => dial(scratch.file('a.sock')))).kind).to.equal('denied')
    expect((await asNobody(() => dial(scratch.file('closed/a.sock')))).kind).to.equal('denied')
    chmodSync(scratch.file('closed'), 0o755)
  })

  it('never dials a path that the system would cut: it could reach another socket', async () => {
    const path = scratch.file('x'.repeat(socketPathLimitBytes))
    const answer = await dial(path)
    expect(answer.kind).to.equal('failed')
    expect('description' in answer && answer.description).to.include(`${Buffer.byteLength(path)} bytes`)
  })

  it('does not take a process that stands still, with its queue full, for a dead one', async function () {
    if (process.platform !== 'linux') return this.skip() // elsewhere a full queue refuses
    const path = scratch.file('a.sock')
    const program = `require('net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log(1))`
    const child = spawn(process.execPath, ['-e', program], { env: {}, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      await once(child.stdout, 'data')
      child.kill('SIGSTOP')
      const kinds = []
      for (let i = 0; i < 20 && kinds.at(-1) !== 'failed'; i++) kinds.push((await dial(path)).kind)
      expect(kinds.at(-1)).to.equal('failed')
      expect(new Set(kinds)).to.eql(new Set(['connected', 'failed']))
    } finally {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
  })

  it('comes to an end at once where its signal is aborted, before or meanwhile', async () => {
    await using _server = await PlainServer.listen(scratch.file('a.sock'))
    const before = await inUse()
    expect(await dial(scratch.file('a.sock'), AbortSignal.abort())).to.eql({ kind: 'failed', description: 'aborted' })
    const controller = new AbortController()
    const dialled = dial(scratch.file('a.sock'), controller.signal)
    controller.abort()
    expect(await dialled).to.eql({ kind: 'failed', description: 'aborted' })
    expect(await leftSince(before)).to.eql([])
  })
})
