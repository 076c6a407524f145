import { mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { spawn } from 'node:child_process'
import { expect } from 'chai'
import { listenOnSocketFile, removeDeadSocket } from '../../../lib/csi/socket-file.js'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'

describe('a socket file', () => {
  let directory: string
  let socketPath: string
  const servers = new Set<Server>()

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ps-'))
    socketPath = join(directory, 'csi.sock')
  })
  afterEach(async () => {
    for (const server of servers) await closed(server)
    servers.clear()
    await rm(directory, { recursive: true })
  })

  function listen(path = socketPath) {
    const server = createServer((connection) => connection.on('error', () => undefined).end('hello'))
    servers.add(server)
    return listenOnSocketFile(server, path)
  }

  it('is its user’s alone, serves, and has nothing beside it', async () => {
    await listen()
    expect((await stat(socketPath)).mode & 0o777).to.equal(0o600)
    expect(await readdir(directory)).to.deep.equal(['csi.sock'])
    expect(await said(socketPath)).to.equal('hello')
  })

  it('is gone when removed, and stays gone when the server closes', async () => {
    const file = await listen()
    file.remove()
    file.remove()
    expect(await readdir(directory)).to.deep.equal([])
    await closed([...servers][0]!)
    expect(await readdir(directory)).to.deep.equal([])
  })

  it('of a newer server is left alone by the old one, at its removal and at its close', async () => {
    const old = await listen()
    await rename(socketPath, join(directory, 'aside'))
    await listen()
    old.remove()
    await closed([...servers][0]!)
    expect(await said(socketPath)).to.equal('hello')
  })

  it('takes the place of a dead one', async () => {
    await leaveDeadSocket(socketPath)
    await listen()
    expect(await said(socketPath)).to.equal('hello')
  })

  it('is refused where a live server is, and the live one is not disturbed', async () => {
    await listen()
    const { code, message } = await refusal(listen())
    expect(code).to.equal('ERR_SOCKET')
    expect(message).to.contain(socketPath).and.to.contain('live')
    expect(await said(socketPath)).to.equal('hello')
    expect(await readdir(directory)).to.deep.equal(['csi.sock'])
  })

  it('goes to one of several servers that start at the same time', async () => {
    await leaveDeadSocket(socketPath)
    const outcomes = await Promise.allSettled([listen(), listen(), listen(), listen()])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(1)
    expect(await readdir(directory)).to.deep.equal(['csi.sock'])
    expect(await said(socketPath)).to.equal('hello')
  })

  for (const [what, make] of [
    ['a regular file', () => writeFile(socketPath, 'precious')],
    ['a link', () => symlink('/nowhere', socketPath)],
  ] as const) {
    it(`is refused where ${what} is, which stays`, async () => {
      await make()
      expect((await refusal(listen())).code).to.equal('ERR_SOCKET')
      expect(await readdir(directory)).to.deep.equal(['csi.sock'])
    })
  }

  it('is refused where a link leads to a dead socket, and both stay', async () => {
    await leaveDeadSocket(join(directory, 'dead'))
    await symlink(join(directory, 'dead'), socketPath)
    expect((await refusal(removeDeadSocket(socketPath))).code).to.equal('ERR_SOCKET')
    expect(await readdir(directory)).to.have.members(['csi.sock', 'dead'])
  })

  it('needs its directory, and says so', async () => {
    const { code, message } = await refusal(listen(join(directory, 'none', 'csi.sock')))
    expect(code).to.equal('ERR_SOCKET')
    expect(message).to.contain('directory does not exist')
  })

  it('may have a path as long as the limit, however short its name, and none longer', async () => {
    for (const name of ['s', 'csi.sock']) {
      const fill = socketPathLimitBytes - Buffer.byteLength(join(directory, '/')) - name.length
      const path = join(directory, 'd'.repeat(fill - 1), name)
      await mkdir(dirname(path))
      expect(Buffer.byteLength(path)).to.equal(socketPathLimitBytes)
      await listen(path)
      expect(await readdir(dirname(path))).to.deep.equal([name])
      expect(await said(path)).to.equal('hello')

      const { code, message, details } = await refusal(listen(`${path}x`))
      expect(code).to.equal('ERR_SOCKET_PATH')
      expect(message).to.contain(String(socketPathLimitBytes + 1))
      expect(details).to.deep.equal({ lengthBytes: socketPathLimitBytes + 1, limitBytes: socketPathLimitBytes })
    }
  })

  for (const path of ['csi.sock', '', '/a\0b']) {
    it(`refuses ${JSON.stringify(path)} as a path`, async () => {
      expect((await refusal(listen(path))).code).to.equal('ERR_OPTION_INVALID')
    })
  }

  it('that cannot be put on its path leaves no server and no file', async () => {
    const server = createServer()
    const { code } = await refusal(listenOnSocketFile(server, `${socketPath}/`))
    expect(code).to.equal('ERR_SOCKET')
    expect(server.listening).to.equal(false)
    expect(await readdir(directory)).to.deep.equal([])
  })
})

async function refusal(attempt: Promise<unknown>): Promise<PlugstreamError> {
  const thrown = await attempt.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  expect(thrown).to.be.instanceOf(PlugstreamError)
  return thrown as PlugstreamError
}

async function said(socketPath: string): Promise<string> {
  let text = ''
  for await (const chunk of connect({ path: socketPath })) text += String(chunk)
  return text
}

/** A process that is killed leaves its socket, dead. */
async function leaveDeadSocket(socketPath: string): Promise<void> {
  const program = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`
  await once(spawn(process.execPath, ['-e', program, socketPath]), 'exit')
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()))
}
