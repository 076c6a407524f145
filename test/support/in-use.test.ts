import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, watch } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { inUse, leftSince } from './in-use.js'

describe('what is left open', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
  after(() => rmSync(directory, { recursive: true }))

  let before: string[]
  beforeEach(async () => {
    before = await inUse()
  })

  it('is nothing at first', async () => {
    expect(await leftSince(before, 0)).to.deep.equal([])
  })

  it('is a timer until it is cleared', async () => {
    const timer = setTimeout(() => undefined, 60_000)
    expect(await leftSince(before, 0)).to.deep.equal(['Timeout'])
    clearTimeout(timer)
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('is a watch until it is closed', async () => {
    const watcher = watch(directory)
    expect(await leftSince(before, 0)).to.deep.equal(['FSEventWrap'])
    watcher.close()
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('is a child until it has ended, and its end is waited for', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(child, 'spawn')
    expect(await leftSince(before, 0)).to.include('ProcessWrap')
    child.unref()
    const left = await leftSince(before, 0)
    if (process.platform === 'linux')
      expect(left)
        .to.have.length(1)
        .and.match(/^child \d+ /)
    child.ref()
    child.kill('SIGKILL')
    expect(await leftSince(before)).to.deep.equal([])
  })

  it('is a server and its connections, held by the event loop or not', async () => {
    const path = join(directory, 'a.sock')
    const server = createServer().listen(path)
    await once(server, 'listening')
    server.unref()
    const client = connect(path).unref()
    const [[socket]] = (await Promise.all([once(server, 'connection'), once(client, 'connect')])) as [[Socket], unknown]
    socket.unref()
    const left = await leftSince(before, 0)
    if (process.platform === 'linux') expect(left).to.deep.equal([`socket ${path}`, `socket ${path}`])
    client.destroy()
    socket.destroy()
    server.close()
    expect(await leftSince(before)).to.deep.equal([])
  })
})
