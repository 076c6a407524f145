import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { logLookMs } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { TaskHandle, TaskSpec } from '../../../lib/task/driver.js'
import { taskLogPaths } from '../../../lib/task/log-file.js'
import { processDriver } from '../../../lib/task/process-driver.js'
import { inUse, leftSince } from '../../support/in-use.js'

const resources = { socketPath: '', env: {}, mounts: [] }

describe('process driver', () => {
  let directory: string
  let before: string[]
  const handles: TaskHandle[] = []

  beforeEach(async () => {
    before = await inUse()
    directory = mkdtempSync(join(realpathSync(tmpdir()), 'plugstream-'))
  })
  afterEach(async () => {
    for (const handle of handles.splice(0)) {
      await handle.stop(0)
      handle.release()
    }
    rmSync(directory, { recursive: true })
    expect(await leftSince(before)).to.deep.equal([])
  })

  const task = (script: string): TaskSpec => ({
    allocId: 'alloc/1',
    taskName: 't',
    isolation: 'none',
    cwd: directory,
    command: ['/bin/sh', '-c', script],
  })

  async function start(spec: TaskSpec, driver = processDriver()): Promise<TaskHandle> {
    const handle = await driver.start(spec, resources)
    handles.push(handle)
    return handle
  }

  async function output(spec: TaskSpec): Promise<string> {
    const handle = await start(spec)
    await handle.exit
    return handle.tail('stdout', 100_000)
  }

  async function untilThere(file: string): Promise<void> {
    while (!existsSync(join(directory, file))) await delay(5)
  }

  describe('tells why a task cannot begin', () => {
    const rows: [name: string, spec: () => Partial<TaskSpec>, words: string, reason: string][] = [
      ['no program', () => ({ command: ['/no/such', 'secret'] }), 'cannot run /no/such: it is not there (ENOENT)', 'ENOENT'], // prettier-ignore
      ['no program in PATH', () => ({ command: ['no-such', 'secret'] }), 'cannot run no-such: it is not there', 'ENOENT'], // prettier-ignore
      ['a file that is no program', () => ({ command: [join(directory, 'plain'), 'secret'] }), 'plain: permission denied (EACCES)', 'EACCES'], // prettier-ignore
      ['no directory', () => ({ cwd: join(directory, 'none') }), 'none: it is not there (ENOENT)', 'ENOENT'],
      ['a file for a directory', () => ({ cwd: join(directory, 'plain') }), 'plain: it is not a directory (ENOTDIR)', 'ENOTDIR'], // prettier-ignore
      ['more arguments than the system takes', () => ({ command: ['/bin/true', 'secret'.repeat(1_000_000)] }), 'cannot run /bin/true: E2BIG', 'E2BIG'], // prettier-ignore
    ]
    for (const [name, spec, words, reason] of rows) {
      it(name, async () => {
        writeFileSync(join(directory, 'plain'), '')
        chmodSync(join(directory, 'plain'), 0o644)
        const failure: unknown = await processDriver()
          .start({ ...task('true'), ...spec() }, resources)
          .catch((thrown: unknown) => thrown)
        expect(failure).to.be.instanceOf(PlugstreamError).with.property('code', 'ERR_TASK_SPAWN')
        const { message, details, retryable, cause } = failure as PlugstreamError
        expect(message)
          .to.match(/^task t of alloc alloc\/1 cannot /)
          .and.include(words)
        expect(details).to.include({ allocId: 'alloc/1', taskName: 't', reason })
        expect(JSON.stringify([message, details, cause])).to.not.include('secret')
        expect(retryable).to.be.false
      })
    }

    it('no place for its log files', async () => {
      writeFileSync(join(directory, 'plain'), '')
      const driver = processDriver({ logDir: join(directory, 'plain') })
      const failure: unknown = await driver.start(task('true'), resources).catch((thrown: unknown) => thrown)
      expect(failure).to.have.property('code', 'ERR_TASK_SPAWN')
      expect((failure as Error).message)
        .to.include('cannot write its log')
        .and.include('plain')
        .and.include('ENOTDIR')
    })

    it('no task at all', async () => {
      const failure: unknown = await processDriver()
        .start({ ...task('true'), env: { 'A=': 'secret' } }, resources)
        .catch((thrown: unknown) => thrown)
      expect(failure).to.have.property('code', 'ERR_OPTION_INVALID')
    })
  })

  it('passes arguments as they are, through no shell', async () => {
    const args = ['a b', '"c"', '$HOME', '*', '; exit 9', '']
    expect(await output({ ...task(''), command: ['printf', '[%s]', ...args] })).to.equal(args.map((arg) => `[${arg}]`).join('')) // prettier-ignore
  })

  it('gives a task of the host only what programs need to find their way', async () => {
    const env = await output({ ...task(''), command: ['env'], env: { OWN: '1' } })
    const names = env.split('\n').map((line) => line.split('=')[0])
    const allowed = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ']
    expect(names).to.include.members(['OWN', 'PATH'])
    expect(names.filter((name) => name && !['OWN', ...allowed].includes(name))).to.deep.equal([])
  })

  it('lets a task have another PATH', async () => {
    mkdirSync(join(directory, 'bin'))
    writeFileSync(join(directory, 'bin', 'mine'), '#!/bin/sh\necho mine', { mode: 0o755 })
    const spec = { ...task(''), command: ['mine'] as const, env: { PATH: `${directory}/bin:/usr/bin:/bin` } }
    expect(await output(spec)).to.equal('mine\n')
  })

  it('works where the host does when no directory is given', async () => {
    const { cwd: _, ...spec } = task('pwd -P')
    expect(await output(spec)).to.equal(`${realpathSync(process.cwd())}\n`)
  })

  it('makes a task the leader of a group of its own', async () => {
    const handle = await start(task('sleep 600'))
    expect(() => process.kill(-handle.pid!, 0)).to.not.throw()
  })

  it('ends a task that was halted, in its own way', async () => {
    const handle = await start(task(`trap 'exit 7' TERM; : > ready; while :; do sleep 0.01; done`))
    await untilThere('ready')
    process.kill(handle.pid!, 'SIGSTOP')
    expect(await handle.stop(600_000)).to.deep.equal({ code: 7, signal: null })
  })

  it('ends a stop at once when the last of a group ends, however long its grace', async () => {
    const handle = await start(task(`sh -c 'trap "" TERM; : > ready; while [ ! -e end ]; do sleep 0.01; done' & exec sleep 600`)) // prettier-ignore
    await untilThere('ready')
    const stopped = handle.stop(600_000)
    expect(await handle.exit).to.deep.equal({ code: null, signal: 'SIGTERM' })
    writeFileSync(join(directory, 'end'), '')
    expect(await stopped).to.deep.equal({ code: null, signal: 'SIGTERM' })
  })

  describe('with log files', () => {
    const paths = (): { stdout: string; stderr: string } => taskLogPaths(join(directory, 'logs'), task(''))
    const driver = (maxLogBytes?: number) =>
      processDriver({ logDir: join(directory, 'logs'), ...(maxLogBytes === undefined ? {} : { maxLogBytes }) })

    it('appends what each run says', async () => {
      for (const n of [1, 2]) await (await start(task(`echo out ${n}; echo err ${n} >&2`), driver())).exit
      expect(readFileSync(paths().stdout, 'utf8')).to.equal('out 1\nout 2\n')
      expect(readFileSync(paths().stderr, 'utf8')).to.equal('err 1\nerr 2\n')
      expect(statSync(paths().stdout).mode & 0o777).to.equal(0o600)
    })

    it('trims them when a run ends, and keeps the tail', async () => {
      const handle = await start(task('echo 0123456789; echo 0123456789 >&2'), driver(5))
      await handle.exit
      expect(await handle.tail('stdout', 100)).to.equal('6789\n')
      expect(await handle.tail('stderr', 100)).to.equal('6789\n')
      expect(statSync(paths().stdout).size + statSync(paths().stderr).size).to.equal(0)
      expect(readFileSync(`${paths().stderr}.1`, 'utf8')).to.equal('6789\n')
    })

    it('trims them when a run begins', async () => {
      await (
        await start(task('echo 0123456789'), driver())
      ).exit
      const handle = await start(task('echo new'), driver(5))
      await handle.exit
      expect(await handle.tail('stdout', 100)).to.equal('6789\nnew\n')
    })

    it('trims them now and then while a task runs', async () => {
      const { setInterval } = globalThis
      let look: (() => void) | undefined
      const own = (callback: () => void, ms: number): NodeJS.Timeout => {
        if (ms === logLookMs) look = callback
        return setInterval(callback, ms)
      }
      globalThis.setInterval = own as typeof setInterval
      try {
        const handle = await start(
          task('echo 0123456789; : > ready; while [ ! -e end ]; do sleep 0.01; done'),
          driver(5),
        )
        await untilThere('ready')
        expect(await handle.tail('stdout', 100)).to.equal('0123456789\n')
        look!()
        expect(await handle.tail('stdout', 100)).to.equal('6789\n')
        expect(statSync(paths().stdout).size).to.equal(0)
      } finally {
        globalThis.setInterval = setInterval
      }
    })
  })

  describe('a host', () => {
    /** Runs the host, and gives the pid of its task and how the host ended. */
    async function host(how: string): Promise<{ pid: number; end: unknown[] }> {
      const program = fileURLToPath(new URL('programs/host.ts', import.meta.url))
      const child = spawn(process.execPath, ['--import', 'tsx/esm', program, directory, how], { stdio: ['ignore', 'pipe', 'inherit'] }) // prettier-ignore
      const [[line], end] = (await Promise.all([once(child.stdout, 'data'), once(child, 'exit')])) as [
        [Buffer],
        unknown[],
      ]
      return { pid: Number(line.toString()), end }
    }
    const size = (): number => statSync(taskLogPaths(directory, { allocId: 'a', taskName: 't' }).stderr).size

    for (const [how, end] of [
      ['killed', [null, 'SIGKILL']],
      ['released', [0, null]],
    ] as const) {
      it(`that is gone (${how}) leaves its task running, which goes on writing, and ends when it will`, async () => {
        const gone = await host(how)
        expect(gone.end).to.deep.equal(end)
        const written = size()
        while (size() === written) await delay(5)
        process.kill(gone.pid, 0)
        writeFileSync(join(directory, 'end'), '')
        await untilThere('ended')
      })
    }

    it('ends by itself when it has stopped its task', async () => {
      const { pid, end } = await host('stop')
      expect(end).to.deep.equal([0, null])
      expect(() => process.kill(pid, 0)).to.throw('ESRCH')
    })
  })
})
