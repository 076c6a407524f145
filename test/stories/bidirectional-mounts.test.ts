import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { dial } from '../../lib/plugin/dial.js'
import { prepareTask } from '../../lib/task/prepare.js'
import type { TaskMount } from '../../lib/task/task.js'
import { config, task } from '../lib/task/plugin-task.js'
import { needs } from '../support/needs.js'
import { Scratch } from '../support/sockets.js'

const mount = (...words: string[]): void => void execFileSync('mount', words, { stdio: 'pipe' })

/** A task in a mount namespace of its own: a shell, told what to do line by line. It sees its mounts below `root`. */
class IsolatedTask implements AsyncDisposable {
  readonly #shell: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>

  constructor(readonly root: string) {
    // `unchanged`: what is shared stays shared with the copy in the new namespace, as container runtimes have it.
    this.#shell = spawn('unshare', ['--mount', '--propagation', 'unchanged', 'sh'])
    this.#lines = createInterface(this.#shell.stdout)[Symbol.asyncIterator]()
  }

  /** Runs one command, and gives the line it writes. */
  async run(command: string): Promise<string> {
    this.#shell.stdin.write(`{ ${command}; } 2>&1 | tr '\\n' ' '; echo\n`)
    const { value } = (await this.#lines.next()) as { value: string | undefined }
    return (value ?? '').trim()
  }

  /** What a runner does with the mounts of `prepare`. */
  async apply(mounts: readonly TaskMount[]): Promise<void> {
    for (const { hostPath, taskPath, propagation } of mounts) {
      const target = this.root + taskPath
      const private_ = propagation === 'private' ? ` && mount --make-rprivate ${target}` : ''
      expect(await this.run(`mkdir -p ${target} && mount --rbind ${hostPath} ${target}${private_}`)).to.equal('')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null) return
    this.#shell.kill('SIGKILL')
    await once(this.#shell, 'close')
  }
}

describe('bidirectional mounts', () => {
  let scratch: Scratch
  beforeEach(function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    scratch = new Scratch()
    mkdirSync(scratch.file('state'))
    mkdirSync(scratch.file('root'))
    mount('-t', 'tmpfs', 'tmpfs', scratch.file('state'))
    mount('--make-shared', scratch.file('state'))
    mount('-t', 'tmpfs', 'tmpfs', scratch.file('root'))
    mount('--make-private', scratch.file('root'))
  })
  afterEach(() => {
    for (const name of ['state', 'root']) {
      const path = scratch.file(name)
      if (readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${path} `)) {
        execFileSync('umount', ['--recursive', '--lazy', path], { stdio: 'pipe' })
      }
    }
    scratch[Symbol.dispose]()
  })

  async function start(): Promise<{ running: IsolatedTask; volumeRoot: string; socketDirectory: string }> {
    const preparation = { stateDir: scratch.file('state'), task: task({ isolation: 'image' }), dial }
    const { mounts } = await prepareTask({ ...preparation, plugin: { kind: 'csi', config: config() } })
    const running = new IsolatedTask(scratch.file('root'))
    await running.apply(mounts)
    const [sockets, volumes] = mounts
    return { running, volumeRoot: volumes?.hostPath ?? '', socketDirectory: sockets?.hostPath ?? '' }
  }

  it('show the host a mount that the task makes, which outlives the task', async () => {
    const { running, volumeRoot } = await start()
    await using task = running
    const inside = `${task.root}/local/csi/volume`
    expect(await task.run(`mkdir ${inside} && mount -t tmpfs tmpfs ${inside} && echo data > ${inside}/file`)).to.equal(
      '',
    )
    expect(readFileSync(`${volumeRoot}/volume/file`, 'utf8')).to.equal('data\n')
    await task[Symbol.asyncDispose]()
    expect(readFileSync(`${volumeRoot}/volume/file`, 'utf8')).to.equal('data\n')
  })

  it('show the task a mount that the host makes', async () => {
    const { running, volumeRoot } = await start()
    await using task = running
    mkdirSync(`${volumeRoot}/volume`)
    mount('-t', 'tmpfs', 'tmpfs', `${volumeRoot}/volume`)
    writeFileSync(`${volumeRoot}/volume/file`, 'data')
    expect(await task.run(`cat ${task.root}/local/csi/volume/file`)).to.equal('data')
  })

  it('show the host the end of a mount that the task takes away', async () => {
    const { running, volumeRoot } = await start()
    await using task = running
    const inside = `${task.root}/local/csi/volume`
    await task.run(`mkdir ${inside} && mount -t tmpfs tmpfs ${inside} && echo data > ${inside}/file`)
    expect(existsSync(`${volumeRoot}/volume/file`)).to.equal(true)
    expect(await task.run(`umount ${inside}`)).to.equal('')
    expect(existsSync(`${volumeRoot}/volume/file`)).to.equal(false)
  })

  it('show the host what is in the socket directory, but no other mount of the task', async () => {
    const { running, socketDirectory } = await start()
    await using task = running
    await task.run(`touch ${task.root}/csi/csi.sock && mkdir ${task.root}/own && mount -t tmpfs tmpfs ${task.root}/own`)
    expect(existsSync(`${socketDirectory}/csi.sock`)).to.equal(true)
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.to.include(`${task.root}/own`)
  })
})
