import { connect } from 'node:net'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { dial } from '../../../lib/plugin/dial.js'
import type { PluginTaskConfig } from '../../../lib/plugin/kind.js'
import { prepareTask, releaseTask } from '../../../lib/task/prepare.js'
import { TaskDirectories } from '../../../lib/task/task-directories.js'
import { socketPathFor } from '../../../lib/task/task-paths.js'
import type { PluginTask, TaskResources } from '../../../lib/task/task.js'
import { asNobody, PlainServer, Scratch, staleSocket, youngerThan } from '../../support/sockets.js'
import { config, task } from './plugin-task.js'

interface Asked {
  task?: Partial<PluginTask>
  config?: Partial<PluginTaskConfig>
}

describe('prepareTask and releaseTask', () => {
  let scratch: Scratch
  let stateDir: string
  beforeEach(() => {
    scratch = new Scratch()
    stateDir = scratch.file('state')
  })
  afterEach(() => scratch[Symbol.dispose]())

  const asked = (fields: Asked = {}) => ({
    stateDir,
    task: task(fields.task),
    plugin: { kind: 'csi', config: config(fields.config) },
    dial,
  })
  const prepare = (fields?: Asked): Promise<TaskResources> => prepareTask(asked(fields))
  const release = (fields?: Asked): Promise<void> => releaseTask(asked(fields))
  const below = (path: string): string => join(stateDir, path)
  const modeOf = (path: string): number => statSync(path).mode & 0o777

  /** The error that preparing ends with. */
  async function refusal(fields?: Asked): Promise<PlugstreamError> {
    const failure: unknown = await prepare(fields).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(failure).to.be.instanceOf(PlugstreamError)
    return failure as PlugstreamError
  }

  describe('what a task is given', () => {
    it('is nothing where it is no plugin, and nothing is made', async () => {
      expect(await prepareTask({ stateDir, task: task(), plugin: undefined, dial })).to.eql({
        socketPath: '',
        env: {},
        mounts: [],
      })
      expect(existsSync(stateDir)).to.equal(false)
    })

    it('is the socket directory alone where it has no volumes, for which no directory is made', async () => {
      const { volumeDir: _, ...plain } = config()
      const plugin = { kind: 'grpc', config: { ...plain, id: 'web', mountDir: '/grpc' } }
      expect((await prepareTask({ ...asked(), plugin })).mounts).to.eql([
        { hostPath: below('grpc/plugins/a/t'), taskPath: '/grpc', readonly: false, propagation: 'private' },
      ])
      expect(readdirSync(below('grpc'))).to.eql(['plugins'])
    })

    it('is the socket directory and the volume root, both ways, and /dev', async () => {
      expect((await prepare({ config: { id: 'ebs' } })).mounts).to.eql([
        { hostPath: below('csi/plugins/a/t'), taskPath: '/csi', readonly: false, propagation: 'bidirectional' },
        { hostPath: below('csi/volumes/ebs'), taskPath: '/local/csi', readonly: false, propagation: 'bidirectional' },
        { hostPath: '/dev', taskPath: '/dev', readonly: false, propagation: 'private' },
      ])
    })

    it('is its endpoint as it sees it: the host path without isolation, the mounted one with', async () => {
      const open = await prepare({ task: { isolation: 'none' } })
      expect(open.socketPath).to.equal(below('csi/plugins/a/t/csi.sock'))
      expect(open.env).to.eql({ CSI_ENDPOINT: `unix://${open.socketPath}` })
      const isolated = await prepare({ task: { isolation: 'image' } })
      expect(isolated.socketPath).to.equal(open.socketPath)
      expect(isolated.env).to.eql({ CSI_ENDPOINT: 'unix:///csi/csi.sock' })
    })

    it('is no endpoint where the task sets it, or its kind has no variable', async () => {
      expect((await prepare({ task: { env: { CSI_ENDPOINT: 'unix:///x' } } })).env).to.eql({})
      const { endpointVariable: _, ...silent } = config()
      const preparation = { ...asked(), plugin: { kind: 'csi', config: silent } }
      expect((await prepareTask(preparation)).env).to.eql({})
    })

    it('is told without a look at the disk as well', async () => {
      expect(socketPathFor(stateDir, 'csi', config(), task())).to.equal((await prepare()).socketPath)
    })
  })

  describe('the directories', () => {
    it('are for their owner alone, and all that is made above them', async () => {
      await prepare({ config: { id: 'ebs' } })
      for (const path of [
        '',
        'csi',
        'csi/volumes',
        'csi/volumes/ebs',
        'csi/plugins',
        'csi/plugins/a',
        'csi/plugins/a/t',
      ])
        expect(modeOf(below(path)), path).to.equal(0o700)
    })

    it('are tightened where they are wider, but not the one that is given', async () => {
      await prepare()
      chmodSync(stateDir, 0o755)
      chmodSync(below('csi'), 0o777)
      chmodSync(below('csi/plugins/a/t'), 0o755)
      await prepare()
      expect([stateDir, below('csi'), below('csi/plugins/a/t')].map(modeOf)).to.eql([0o755, 0o700, 0o700])
    })

    it('are the same at a second call, with what is in the volume root', async () => {
      const first = await prepare()
      writeFileSync(below('csi/volumes/p/kept'), '')
      expect(await prepare()).to.eql(first)
      expect(existsSync(below('csi/volumes/p/kept'))).to.equal(true)
    })

    it('are never reached through a link below the state directory', async () => {
      mkdirSync(scratch.file('elsewhere'), { mode: 0o755 })
      mkdirSync(below('csi'), { recursive: true })
      symlinkSync(scratch.file('elsewhere'), below('csi/plugins'))
      const failure = await refusal()
      expect(failure.code).to.equal('ERR_SOCKET')
      expect(failure.message).to.include(`${below('csi/plugins')} is a symbolic link`)
      expect(readdirSync(scratch.file('elsewhere'))).to.eql([])
      expect(modeOf(scratch.file('elsewhere'))).to.equal(0o755)
    })

    it('may lie in a state directory that is a link itself', async () => {
      mkdirSync(scratch.file('real'))
      symlinkSync('real', stateDir)
      await prepare()
      expect(existsSync(scratch.file('real/csi/plugins/a/t'))).to.equal(true)
    })

    it('are not made over a file', async () => {
      mkdirSync(below('csi'), { recursive: true })
      writeFileSync(below('csi/volumes'), '')
      expect((await refusal()).message).to.include(`${below('csi/volumes')} is a file; a directory belongs there`)
    })

    it('are refused with a reason where the system does not let them be made', async () => {
      mkdirSync(stateDir, { mode: 0o555 })
      const failure = await asNobody(() => refusal())
      expect(failure.code).to.equal('ERR_SOCKET')
      expect(failure.message).to.match(/making .*EACCES/)
    })

    it('hold any name', async () => {
      for (const name of ['..', 'a/b', '.', 'ä漢\u0301', '\ud800', 'x'.repeat(300), 'A', 'a']) {
        const { socketPath, mounts } = await prepare({ task: { allocId: name, taskName: name }, config: { id: name } })
        expect(Buffer.byteLength(socketPath)).to.be.at.most(socketPathLimitBytes)
        await using _server = await PlainServer.listen(socketPath)
        for (const { hostPath } of mounts.slice(0, 2))
          expect(lstatSync(hostPath).isDirectory(), hostPath).to.equal(true)
      }
      expect(readdirSync(below('csi/volumes'))).to.have.length(8)
      expect(readdirSync(scratch.path)).to.eql(['state'])
    })
  })

  describe('what is where the socket belongs', () => {
    const socketPath = (): string => below('csi/plugins/a/t/csi.sock')
    beforeEach(() => prepare())

    it('is removed where it is a dead socket', async () => {
      await staleSocket(socketPath())
      await prepare()
      expect(existsSync(socketPath())).to.equal(false)
    })

    it('stays where somebody answers, and the task may try again later', async () => {
      await using server = await PlainServer.listen(socketPath())
      const failure = await refusal()
      expect(failure.code).to.equal('ERR_SOCKET')
      expect(failure.retryable).to.equal(true)
      expect(failure.message).to.include(socketPath()).and.include('somebody answers there')
      const client = connect(socketPath())
      await once(client, 'connect')
      client.destroy()
      await server[Symbol.asyncDispose]()
      await prepare()
    })

    it('stays where it is a file, a directory or a link, dead or not', async () => {
      const things: Record<string, () => void> = {
        'a file': () => writeFileSync(socketPath(), 'precious'),
        'a directory': () => mkdirSync(socketPath()),
        'a symbolic link': () => symlinkSync('nowhere', socketPath()),
      }
      for (const [what, make] of Object.entries(things)) {
        make()
        const failure = await refusal()
        expect(failure.code).to.equal('ERR_SOCKET')
        expect(failure.message).to.include(`${what} is in its place`)
        expect(lstatSync(socketPath()).isSocket()).to.equal(false)
        await rm(socketPath(), { recursive: true })
      }
    })

    it('stays where it cannot be told whether somebody answers', async () => {
      await staleSocket(socketPath())
      const unsure = { ...asked(), dial: () => Promise.resolve({ kind: 'failed', description: 'queue full' } as const) }
      const failure: unknown = await prepareTask(unsure).catch((thrown: unknown) => thrown)
      expect((failure as PlugstreamError).message).to.include('queue full')
      expect(existsSync(socketPath())).to.equal(true)
    })

    it('stays where another server took the path during the look', async () => {
      await staleSocket(socketPath())
      let server: PlainServer | undefined
      const slow: typeof dial = async (path) => {
        const answer = await dial(path)
        if (server) return answer
        await youngerThan(path)
        await rm(path)
        server = await PlainServer.listen(path)
        return answer
      }
      const failure: unknown = await prepareTask({ ...asked(), dial: slow }).catch((thrown: unknown) => thrown)
      expect((failure as PlugstreamError).message).to.include('somebody answers there')
      expect(await dial(socketPath())).to.eql({ kind: 'connected' })
      await server?.[Symbol.asyncDispose]()
    })
  })

  describe('a long socket path', () => {
    /** An alloc with which the natural path has exactly this many bytes. */
    const allocFor = (bytes: number): string => 'a'.repeat(bytes - `${stateDir}/csi/plugins//t/csi.sock`.length)

    it('is taken with exactly as many bytes as a socket may have, and reaches its own server', async () => {
      const { socketPath } = await prepare({ task: { allocId: allocFor(socketPathLimitBytes) } })
      expect(Buffer.byteLength(socketPath)).to.equal(socketPathLimitBytes)
      await using _server = await PlainServer.listen(socketPath)
      expect(await dial(socketPath)).to.eql({ kind: 'connected' })
      expect(lstatSync(socketPath).isSocket()).to.equal(true)
    })

    it('goes to the short directory with one byte more, which is as private', async () => {
      const { socketPath, mounts } = await prepare({ task: { allocId: allocFor(socketPathLimitBytes + 1) } })
      expect(dirname(dirname(socketPath))).to.equal(below('s'))
      expect(modeOf(dirname(socketPath))).to.equal(0o700)
      expect(mounts[0]?.hostPath).to.equal(dirname(socketPath))
    })

    it('never meets another that shares its first 107 bytes', async () => {
      const allocId = allocFor(socketPathLimitBytes + 10)
      const one = await prepare({ task: { allocId: `${allocId}1` } })
      await using server = await PlainServer.listen(one.socketPath)
      const two = await prepare({ task: { allocId: `${allocId}2` } })
      expect(await dial(two.socketPath)).to.have.property('kind', 'missing')
      await using _other = await PlainServer.listen(two.socketPath)
      expect(server.accepted).to.equal(0)
    })

    it('is refused with its length and the limit where the short directory is too deep as well', async () => {
      stateDir = scratch.file('x'.repeat(90))
      const failure = await refusal()
      expect(failure.code).to.equal('ERR_SOCKET_PATH')
      expect(failure.details).to.include({ limitBytes: socketPathLimitBytes })
      expect(failure.message).to.include(`${String(failure.details['lengthBytes'])} bytes`)
      expect(existsSync(stateDir)).to.equal(false)
    })

    it('is refused as the task would see it, too', async () => {
      const mountDir = `/${'m'.repeat(100)}`
      const failure = await refusal({ task: { isolation: 'image' }, config: { mountDir } })
      expect(failure.code).to.equal('ERR_SOCKET_PATH')
      expect(failure.message).to.include('use a shorter mountDir')
      await prepare({ task: { isolation: 'none' }, config: { mountDir } })
    })
  })

  describe('a task that never starts again', () => {
    it('leaves no socket directory and none of its alloc, but the volume root', async () => {
      const { socketPath } = await prepare()
      await staleSocket(socketPath)
      writeFileSync(join(dirname(socketPath), 'lock'), '')
      await release()
      expect(readdirSync(below('csi/plugins'))).to.eql([])
      expect(readdirSync(below('csi/volumes'))).to.eql(['p'])
    })

    it('leaves the directories of another task of its alloc', async () => {
      await prepare()
      await prepare({ task: { taskName: 'u' } })
      await release()
      expect(readdirSync(below('csi/plugins/a'))).to.eql(['u'])
    })

    it('leaves no short directory', async () => {
      const fields = { task: { allocId: 'a'.repeat(100) } }
      await prepare(fields)
      await release(fields)
      expect(readdirSync(below('s'))).to.eql([])
    })

    it('may be released twice, or without ever being prepared, or being no plugin', async () => {
      await release()
      await prepare()
      await release()
      await release()
      await releaseTask({ ...asked(), plugin: undefined })
      expect(existsSync(below('csi/plugins/a'))).to.equal(false)
    })

    it('leaves everything where somebody still answers', async () => {
      const { socketPath } = await prepare()
      await using _server = await PlainServer.listen(socketPath)
      await release()
      expect(await dial(socketPath)).to.eql({ kind: 'connected' })
    })

    it('leaves a directory in its socket directory, behind which a mount may hide', async () => {
      const { socketPath } = await prepare()
      mkdirSync(join(dirname(socketPath), 'volume'))
      writeFileSync(join(dirname(socketPath), 'volume/data'), '')
      await release()
      expect(readdirSync(dirname(socketPath))).to.eql(['volume'])
    })

    it('has nothing removed through a link', async () => {
      const { socketPath } = await prepare()
      mkdirSync(scratch.file('elsewhere/t'), { recursive: true })
      writeFileSync(scratch.file('elsewhere/t/precious'), '')
      await rm(dirname(dirname(socketPath)), { recursive: true })
      symlinkSync(scratch.file('elsewhere'), below('csi/plugins/a'))
      await release()
      expect(existsSync(scratch.file('elsewhere/t/precious'))).to.equal(true)
    })
  })

  describe('TaskDirectories', () => {
    const plugin = { kind: 'csi', config: config() }

    it('does what concerns an alloc in the order it was asked for', async () => {
      const directories = new TaskDirectories({ stateDir, dial })
      for (let round = 0; round < 20; round++) {
        const [{ socketPath }] = await Promise.all([
          directories.prepare(task(), plugin),
          directories.release(task(), plugin),
          directories.prepare(task(), plugin),
          directories.release(task({ taskName: 'u' }), plugin),
        ])
        expect(existsSync(dirname(socketPath))).to.equal(true)
      }
      void directories.release(task(), plugin)
      await directories.idle()
      expect(existsSync(below('csi/plugins/a'))).to.equal(false)
    })

    it('goes on after a failure', async () => {
      const directories = new TaskDirectories({ stateDir, dial })
      const { socketPath } = await directories.prepare(task(), plugin)
      writeFileSync(socketPath, '')
      const failing = directories.prepare(task(), plugin)
      const other = directories.prepare(task({ taskName: 'u' }), plugin)
      expect(await failing.catch((failure: unknown) => failure)).to.be.instanceOf(PlugstreamError)
      expect((await other).socketPath).to.include('/u/')
    })
  })
})
