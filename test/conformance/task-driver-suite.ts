import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { TaskDriver, TaskHandle, TaskSpec } from '../../lib/task/driver.js'
import type { TaskResources } from '../../lib/task/task.js'
import type { SuiteRunner } from './runner.js'

/** How the suite gets at the driver it tests. */
export interface TaskDriverHarness {
  /** A driver, and a fresh directory that the test and its tasks see under the same path. */
  make(): Promise<{ driver: TaskDriver; directory: string }>
  /** Removes what `make` made, after each test. */
  dispose?(made: { driver: TaskDriver; directory: string }): Promise<void>
  /** A task that runs a script of the POSIX shell. Default: `/bin/sh -c`. */
  task?(script: string): TaskSpec
  /** Whether any process that has these words among its arguments is alive. Default: looks among the processes of this host. */
  isAlive?(words: string): Promise<boolean>
  /** What a task has started ends with it, as in a container. Default: it may live on until the task is stopped. */
  endsTogether?: boolean
}

/**
 * What every task driver must do, as tests of any runner. Needs a task that is a POSIX shell with `sleep` and `kill`.
 *
 * @example
 * import { describe, it } from 'mocha'
 * taskDriverSuite({ describe, it }, 'my driver', { make: async () => ({ driver: myDriver(), directory: await scratch() }) })
 */
export function taskDriverSuite(runner: SuiteRunner, name: string, harness: TaskDriverHarness): void {
  const { task = shellTask, isAlive = isAliveHere, endsTogether = false } = harness

  const row = (title: string, body: (self: Scene) => Promise<void>): void => {
    runner.it(title, async () => {
      const before = await openThings()
      const made = await harness.make()
      const scene = new Scene(made.driver, made.directory, task, isAlive)
      try {
        await body(scene)
      } finally {
        await scene.close()
        await harness.dispose?.(made)
      }
      await until('everything is closed', async () => (await openThings()) <= before)
    })
  }

  runner.describe(`task driver: ${name}`, () => {
    for (const code of [0, 1, 143]) {
      row(`tells exit code ${code} as a value`, async (self) => {
        deepEqual(await (await self.start(`exit ${code}`)).exit, { code, signal: null })
      })
    }

    row('tells the signal that ended a task', async (self) => {
      deepEqual(await (await self.start('kill -9 $$')).exit, { code: null, signal: 'SIGKILL' })
    })

    row('rejects what cannot begin', async (self) => {
      const spec: TaskSpec = { ...task('true'), command: ['/no/such/program'] }
      await rejects(self.driver.start(spec, self.resources), { code: 'ERR_TASK_SPAWN' })
    })

    row('has in its tail what a task wrote before it ended', async (self) => {
      const handle = await self.start('echo first; echo last; echo trouble >&2; exit 1')
      await handle.exit
      equal(await handle.tail('stdout', 1_000), 'first\nlast\n')
      equal(await handle.tail('stderr', 1_000), 'trouble\n')
      equal(await handle.tail('stdout', 5), 'last\n')
      equal(await handle.tail('stdout', 0), '')
    })

    row('cuts no character in two at the front of a tail', async (self) => {
      const handle = await self.start("printf 'ä日🚀!'")
      await handle.exit
      const tails = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((bytes) => handle.tail('stdout', bytes)))
      deepEqual(tails, ['!', '!', '!', '!', '🚀!', '🚀!', '🚀!', '日🚀!', '日🚀!', 'ä日🚀!'])
    })

    row('gives a task what its resources say, and its own variables before those', async (self) => {
      const spec: TaskSpec = { ...task('echo "$ENDPOINT $MODE"'), env: { MODE: 'own' } }
      const resources = { ...self.resources, env: { ENDPOINT: 'unix:///x', MODE: 'given' } }
      const handle = self.keep(await self.driver.start(spec, resources))
      await handle.exit
      equal(await handle.tail('stdout', 1_000), 'unix:///x own\n')
    })

    row('gives a task nothing else of the environment of its host', async (self) => {
      process.env['PLUGSTREAM_TEST_SECRET'] = 'secret'
      try {
        const handle = await self.start('echo "[$PLUGSTREAM_TEST_SECRET]"')
        await handle.exit
        equal(await handle.tail('stdout', 1_000), '[]\n')
      } finally {
        delete process.env['PLUGSTREAM_TEST_SECRET']
      }
    })

    row('runs a task in its directory', async (self) => {
      const handle = self.keep(await self.driver.start({ ...task('pwd -P'), cwd: self.directory }, self.resources))
      await handle.exit
      equal(await handle.tail('stdout', 1_000), `${await realpath(self.directory)}\n`)
    })

    row('ends a task that heeds SIGTERM long before its grace is over', async (self) => {
      const handle = await self.start(`trap 'echo bye; exit 7' TERM; ${ready}; ${forever}`)
      await self.ready(handle)
      deepEqual(await handle.stop(600_000), { code: 7, signal: null })
      equal(await handle.tail('stdout', 4), 'bye\n')
    })

    row('kills a task that ignores SIGTERM when its grace is over', async (self) => {
      const handle = await self.start(`trap '' TERM; ${ready}; ${forever}`)
      await self.ready(handle)
      const askedAt = performance.now()
      deepEqual(await handle.stop(100), { code: null, signal: 'SIGKILL' })
      ok(performance.now() - askedAt >= 99)
    })

    row('joins a stop in flight, and knows the end of a task that was stopped', async (self) => {
      const handle = await self.start(`trap 'exit 7' TERM; ${ready}; ${forever}`)
      await self.ready(handle)
      const both = await Promise.all([handle.stop(600_000), handle.stop(600_000)])
      deepEqual(both, [await handle.exit, await handle.exit])
      deepEqual(await handle.stop(0), { code: 7, signal: null })
    })

    row('stops a task that has ended by itself', async (self) => {
      const handle = await self.start('exit 3')
      await handle.exit
      deepEqual(await handle.stop(600_000), { code: 3, signal: null })
    })

    row('leaves nothing of what a stopped task has started', async (self) => {
      const words = self.words()
      const handle = await self.start(`/bin/sh -c 'trap "" TERM; ${ready}; ${forever} # ${words}' & ${forever}`)
      await self.ready(handle)
      ok(await isAlive(words))
      await handle.stop(100)
      ok(!(await isAlive(words)))
    })

    row('leaves nothing of what a task has started that had ended by itself', async (self) => {
      const words = self.words()
      const handle = await self.start(
        `/bin/sh -c '${ready}; ${forever} # ${words}' & while [ ! -e go ]; do sleep 0.01; done`,
      )
      await self.ready(handle)
      await writeFile(join(self.directory, 'go'), '')
      deepEqual(await handle.exit, { code: 0, signal: null })
      equal(await isAlive(words), !endsTogether)
      deepEqual(await handle.stop(10_000), { code: 0, signal: null })
      ok(!(await isAlive(words)))
    })

    row('lets go of a task without ending it', async (self) => {
      const words = self.words()
      const handle = await self.start(
        `${ready}; while [ ! -e end ]; do echo .; echo . >&2; sleep 0.01; done # ${words}`,
      )
      await self.ready(handle)
      handle.release()
      handle.release()
      equal(await handle.tail('stdout', 1_000), '')
      ok(await isAlive(words))
      await writeFile(join(self.directory, 'end'), '')
      await until('the task has ended by itself', async () => !(await isAlive(words)))
    })

    row('runs several tasks at a time, each with its own output and end', async (self) => {
      const handles = await Promise.all([1, 2, 3, 4, 5].map((n) => self.start(`echo ${n}; exit ${n}`, `t${n}`)))
      deepEqual(await Promise.all(handles.map(async ({ exit }) => (await exit).code)), [1, 2, 3, 4, 5])
      for (const [at, handle] of handles.entries()) match(await handle.tail('stdout', 100), new RegExp(`^${at + 1}\n$`))
    })
  })
}

/** In a script: says that it has come so far. */
const ready = ': > ready'
const forever = 'while :; do sleep 0.05; done'

/** One test's driver, with the handles it has to end. */
class Scene {
  readonly resources: TaskResources = { socketPath: '', env: {}, mounts: [] }
  readonly #handles: TaskHandle[] = []

  constructor(
    readonly driver: TaskDriver,
    readonly directory: string,
    readonly task: (script: string) => TaskSpec,
    readonly isAlive: (words: string) => Promise<boolean>,
  ) {}

  async start(script: string, taskName = 't'): Promise<TaskHandle> {
    return this.keep(await this.driver.start({ ...this.task(script), cwd: this.directory, taskName }, this.resources))
  }

  keep(handle: TaskHandle): TaskHandle {
    this.#handles.push(handle)
    return handle
  }

  /** Words that no other process has. */
  words(): string {
    return `marked-${randomUUID()}`
  }

  async ready(handle: TaskHandle): Promise<void> {
    const file = join(this.directory, 'ready')
    await until('the task is ready', async () => {
      const written = await readFile(file).then(
        () => true,
        () => false,
      )
      if (!written) await Promise.race([handle.exit.then(failEarly), delay(5)])
      return written
    })
  }

  async close(): Promise<void> {
    for (const handle of this.#handles) {
      await handle.stop(0)
      handle.release()
    }
  }
}

function failEarly(): never {
  throw new Error('the task has ended before it was ready')
}

function shellTask(script: string): TaskSpec {
  return { allocId: 'a', taskName: 't', isolation: 'none', command: ['/bin/sh', '-c', script] }
}

/** Zombies have no arguments, so that they do not count. */
async function isAliveHere(words: string): Promise<boolean> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'args='])
    return stdout.includes(words)
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const all = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return all.some((line) => line.includes(words))
}

/** How much this process has open: its descriptors, or, where those cannot be counted, what its event loop waits for. */
async function openThings(): Promise<number> {
  const descriptors = await readdir('/proc/self/fd').catch(() => undefined)
  if (descriptors) return descriptors.length
  return process.getActiveResourcesInfo().filter((kind) => kind !== 'Timeout' && kind !== 'Immediate').length
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 10_000
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`waited in vain until ${what}`)
    await delay(5)
  }
}
