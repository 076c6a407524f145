import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { firstValueFrom, merge, of, Subject, tap } from 'rxjs'
import { hostpathCommand } from '../../examples/hostpath-driver/command.js'
import type { TaskHandle } from '../../lib/task/driver.js'
import { taskLogPaths } from '../../lib/task/log-file.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { TaskEvent, TaskMount, TaskResources } from '../../lib/task/task.js'
import {
  containerLabels,
  dockerDriver,
  dockerTaskEvents,
  type ContainerTask,
  type DockerDriver,
} from '../../streams/docker.js'
import { openHost } from '../../streams/host.js'
import type { PluginHost } from '../../streams/plugin-host.js'
import { runTasks } from '../../streams/run-tasks.js'
import { Recording } from '../stories/recording.js'
import { ImageRegistry } from './image-registry.js'
import { makeShared, mountsBelow, unmountBelow } from './mounts.js'
import { image, needsContainers, Podman } from './podman.js'

type Started = Extract<TaskEvent, { kind: 'started' }>

const nothing: TaskResources = { socketPath: '', env: {}, mounts: [] }
const sources = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const hostProgram = fileURLToPath(new URL('./container-host.ts', import.meta.url))
const seen = (path: string, more: Partial<TaskMount> = {}): TaskMount => ({
  hostPath: path,
  taskPath: path,
  readonly: false,
  propagation: 'private',
  ...more,
})

describe('containers of an engine', function () {
  this.timeout(60_000)
  let podman: Podman
  let directory: string
  let driver: DockerDriver

  before(async function () {
    needsContainers(this)
    podman = await Podman.start()
  })
  after(() => (podman as Podman | undefined)?.[Symbol.asyncDispose]())

  beforeEach(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), 'ps-')))
    driver = driverOf(directory)
  })
  afterEach(async () => {
    await driver.collect([])
    expect(await podman.docker.listContainers({ all: true })).to.deep.equal([])
    unmountBelow(directory)
    rmSync(directory, { recursive: true })
  })

  const driverOf = (hostId: string): DockerDriver =>
    dockerDriver({ hostId, docker: podman.docker, logDir: join(directory, 'logs') })

  const shell = (script: string, container: Partial<ContainerTask['container']> = {}): ContainerTask => ({
    allocId: 'a',
    taskName: 't',
    isolation: 'image',
    command: ['/bin/sh', '-c', script],
    container: { image, network: 'none', ...container },
  })

  /** What a container says until it ends by itself. */
  async function said(task: ContainerTask, by = driver): Promise<string> {
    const handle = await by.start(task, nothing)
    try {
      await handle.exit
      return await handle.tail('stdout', 100_000)
    } finally {
      await handle.stop(0)
      handle.release()
    }
  }

  /** The state directory of a host whose mounts go both ways. */
  function sharedDirectory(): string {
    const stateDir = join(directory, 'state')
    mkdirSync(stateDir)
    makeShared(stateDir)
    return stateDir
  }

  const hostpath = (): ContainerTask => {
    mkdirSync(join(directory, 'volumes'), { recursive: true })
    return {
      allocId: 'files-1',
      taskName: 'driver',
      isolation: 'image',
      command: hostpathCommand({ name: 'files', 'node-id': 'here', 'state-dir': join(directory, 'volumes') }),
      cwd: sources,
      csiPlugin: { id: 'files', type: 'monolith' },
      container: {
        image,
        network: 'none',
        privileged: true,
        mounts: [seen(sources, { readonly: true }), seen(join(directory, 'volumes'))],
      },
    }
  }

  async function withHost(
    stateDir: string,
    task: ContainerTask,
    onClose: 'stop' | 'keep',
    tell: (story: { host: PluginHost; tasks: Recording<TaskEvent>; order$: Subject<TaskOrder> }) => Promise<void>,
  ): Promise<void> {
    const order$ = new Subject<TaskOrder>()
    const told$ = new Subject<TaskEvent>()
    const tasks = new Recording(told$)
    const host = await openHost({
      stateDir,
      task$: (ports) => runTasks(merge(of(task), order$), driver, ports, { onClose }).pipe(tap(told$)),
    })
    try {
      await tell({ host, tasks, order$ })
    } finally {
      await host.close()
      tasks.stop()
    }
  }

  const healthy = (host: PluginHost): Promise<unknown> =>
    host.waitFor('csi-node', 'files', { healthy: true, timeoutMs: 30_000 })

  it('mount volumes that the host and other containers see, and that outlive the container of the plugin', async () => {
    const stateDir = sharedDirectory()
    await withHost(stateDir, hostpath(), 'stop', async ({ host, tasks, order$ }) => {
      await healthy(host)
      const { volume } = await host.volumes.create({
        plugin: 'files',
        name: 'data',
        volumeCapabilities: [{ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }],
      })
      const of = { plugin: 'files', volumeId: volume.volumeId }
      const mounted = await host.volumes.mount({ ...of, volumeContext: volume.volumeContext, allocId: 'web-1' })
      const points = mountsBelow(stateDir).map(({ path }) => path)
      expect(points).to.include(mounted.path)
      writeFileSync(join(mounted.path, 'first'), 'before')

      const data = seen(mounted.path, { taskPath: '/data' })
      const script = 'cat /data/first; while [ ! -e /data/second ]; do sleep 0.05; done; cat /data/second'
      const reader = await driver.start({ ...shell(script, { mounts: [data] }), allocId: 'web-1' }, nothing)
      try {
        const filters = { label: ['plugstream.alloc=files-1'] }
        const [plugin] = await podman.docker.listContainers({ filters })
        tasks.skip()
        order$.next({ order: 'restart', allocId: 'files-1', taskName: 'driver' })
        const again = await tasks.until((event): event is Started => event.kind === 'started')
        const gone: unknown = await podman.docker
          .getContainer(plugin!.Id)
          .inspect()
          .catch((failure: unknown) => failure)
        expect(gone).to.have.property('statusCode', 404)
        expect(mountsBelow(stateDir).map(({ path }) => path)).to.include(mounted.path)
        const inside = mounted.path.replace(`${stateDir}/csi/volumes/files`, '/local/csi')
        expect(readFileSync(`/proc/${again.pid}/mountinfo`, 'utf8')).to.include(` ${inside} `)
        await healthy(host)

        writeFileSync(join(mounted.path, 'second'), ' and after')
        expect(await reader.exit).to.deep.equal({ code: 0, signal: null })
        expect(await reader.tail('stdout', 100)).to.equal('before and after')
        expect(await said({ ...shell('cat /data/second', { mounts: [data] }), allocId: 'web-2' })).to.equal(
          ' and after',
        )
      } finally {
        await reader.stop(0)
        reader.release()
      }
      await mounted.unmount()
      expect(mountsBelow(stateDir)).to.deep.equal([])
      await host.volumes.delete(of)
    })
  })

  it('go on without their host, which was killed, and are taken over by the next once the engine answers', async () => {
    const stateDir = sharedDirectory()
    driver = driverOf(stateDir)
    const task = hostpath()
    const args = [stateDir, podman.socketPath, join(directory, 'logs'), JSON.stringify(task)]
    const child = spawn(process.execPath, ['--import', 'tsx/esm', hostProgram, ...args], {
      stdio: ['ignore', 'pipe', 2],
    })
    const ended = once(child, 'close')
    let said = ''
    for await (const text of child.stdout!.setEncoding('utf8') as AsyncIterable<string>) {
      said += text
      if (said.includes('healthy')) child.kill('SIGKILL')
    }
    expect(await ended).to.deep.equal([null, 'SIGKILL'])
    const pid = Number.parseInt(said)
    expect(pid).to.be.greaterThan(0)

    await podman.stopServing()
    await withHost(stateDir, task, 'stop', async ({ host, tasks }) => {
      const health = new Recording(host.health$)
      const { code } = await firstValueFrom(host.problem$)
      expect(code).to.equal('ERR_CONTAINER')
      await healthy(host)
      await podman.serve()
      await tasks.until(({ kind }) => kind === 'started')
      await healthy(host)
      expect(tasks.all.map(({ kind }) => kind)).to.deep.equal(['prestart', 'started'])
      expect(tasks.all[1]).to.include({ pid, adopted: true })
      health.stop()
      expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready', 'ready'])
    })
    const log = readFileSync(taskLogPaths(join(directory, 'logs'), task).stdout, 'utf8')
    expect(log).to.match(/it listens on[^]*SIGTERM: finishing/)
  })

  it('are started anew where they have ended without their host', async () => {
    const stateDir = sharedDirectory()
    const task = hostpath()
    await withHost(stateDir, task, 'keep', async ({ host }) => {
      await healthy(host)
    })
    const [left] = await podman.docker.listContainers({ filters: { label: ['plugstream.alloc=files-1'] } })
    const container = podman.docker.getContainer(left!.Id)
    await container.kill({ signal: 'SIGKILL' })
    await container.wait()
    await withHost(stateDir, task, 'stop', async ({ host, tasks }) => {
      const started = await tasks.until((event): event is Started => event.kind === 'started')
      expect(started.adopted).to.equal(undefined)
      await healthy(host)
      const again = await podman.docker.listContainers({ all: true, filters: { label: ['plugstream.alloc=files-1'] } })
      expect(again.map(({ Id }) => Id))
        .to.have.length(1)
        .and.not.include(left!.Id)
    })
  })

  it('are replaced where their task was changed while the host was away', async () => {
    const left = await driver.start(shell('trap "exit 0" TERM; while :; do sleep 0.05; done'), nothing)
    left.release()
    expect(await driverOf(directory).adopt(shell('exit 1'))).to.equal(undefined)
    expect(await podman.docker.listContainers({ all: true })).to.deep.equal([])
  })

  it('are collected by their own host where nobody wants them, and by no other', async () => {
    const script = 'while :; do sleep 0.05; done'
    const handles: TaskHandle[] = []
    for (const allocId of ['wanted', 'stray']) handles.push(await driver.start({ ...shell(script), allocId }, nothing))
    handles.forEach((handle) => handle.release())
    expect(await driverOf('another').collect([])).to.deep.equal([])
    expect(await driver.collect([{ allocId: 'wanted', taskName: 't' }])).to.deep.equal([
      { allocId: 'stray', taskName: 't' },
    ])
    const [adopted, ...more] = await Promise.all(
      ['wanted', 'stray'].map((allocId) => driver.adopt({ ...shell(script), allocId })),
    )
    expect(more).to.deep.equal([undefined])
    await adopted!.stop(0)
    adopted!.release()
  })

  it('have the user, the capabilities, the devices and the limits that their task asks for', async () => {
    const status =
      'while read -r name value rest; do case $name in Uid:|CapBnd:) echo $name $value;; esac; done < /proc/self/status'
    const plain = await said(shell(status))
    expect(plain).to.match(/^Uid: 0$/m)
    const settings = { user: '1234:1234', capabilities: ['SYS_ADMIN'], devices: ['/dev/fuse'] }
    const asking = shell(`${status}; test -c /dev/fuse && echo fuse`, settings)
    const given = await said({ ...asking, allocId: 'b' })
    expect(given)
      .to.match(/^Uid: 1234$/m)
      .and.match(/^fuse$/m)
    const has = (text: string): boolean => ((BigInt(`0x${/CapBnd: (\S+)/.exec(text)?.[1]}`) >> 21n) & 1n) === 1n
    expect([has(plain), has(given)]).to.deep.equal([false, true])
  })

  it('have the memory, the processor time and the processes that their task asks for', async () => {
    const limits = { memoryBytes: 64 * 2 ** 20, cpus: 0.5, pidsLimit: 50 }
    const handle = await driver.start(shell('while :; do sleep 0.05; done', limits), nothing)
    try {
      const cgroups = readFileSync(`/proc/${handle.pid}/cgroup`, 'utf8')
      const { Id } = (await podman.docker.listContainers())[0]!
      const { HostConfig } = await podman.docker.getContainer(Id).inspect()
      expect(HostConfig).to.include({ Memory: 64 * 2 ** 20, NanoCpus: 500_000_000, PidsLimit: 50 })
      expect(cgroups).to.include(Id)
    } finally {
      await handle.stop(0)
      handle.release()
    }
  })

  it('are ended where they need more memory than they may have', async () => {
    const task = shell('', { memoryBytes: 48 * 2 ** 20 })
    const greedy = 'const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))'
    const handle = await driver.start({ ...task, command: [process.execPath, '-e', greedy] }, nothing)
    expect(await handle.exit).to.deep.equal({ code: null, signal: 'SIGKILL', reason: 'out of memory' })
    await handle.stop(0)
    handle.release()
  })

  it('do not start where what they mount would be seen by nobody, and say what to do', async () => {
    const plain = join(directory, 'plain')
    mkdirSync(plain)
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', plain])
    execFileSync('mount', ['--make-private', plain])
    const mounts = [seen(plain, { propagation: 'bidirectional' })]
    const failure: unknown = await driver
      .start(shell('exit 0'), { ...nothing, mounts })
      .catch((error: unknown) => error)
    expect(failure).to.include({ code: 'ERR_CONTAINER' })
    expect((failure as Error).message).to.include(`mount --make-rshared ${plain}`)
  })

  it('have their image pulled where the engine does not have it', async () => {
    await podman.push(image, join(directory, 'image'))
    await using registry = new ImageRegistry(join(directory, 'image'))
    const pulled = `${await registry.serve()}/tests/node:2`
    try {
      expect(await said(shell('echo here', { image: pulled }))).to.equal('here\n')
      expect(await said({ ...shell('echo again', { image: pulled, pull: 'never' }), allocId: 'b' })).to.equal('again\n')
    } finally {
      await podman.docker.getImage(pulled).remove()
    }
  })

  it('say which image there is not, and why it cannot be had', async () => {
    for (const [pull, words] of [
      ['never', 'not to be pulled'],
      ['missing', 'pulling it failed'],
    ] as const) {
      const task = shell('exit 0', { image: 'localhost:1/no/such:1', pull })
      const failure: unknown = await driver.start(task, nothing).catch((error: unknown) => error)
      expect(failure).to.include({ code: 'ERR_CONTAINER' })
      expect((failure as Error).message)
        .to.include('localhost:1/no/such:1')
        .and.include(words)
    }
  })

  it('that somebody else runs tell of themselves, also of what happened while the engine was away', async () => {
    const task = { allocId: 'a', taskName: 't', isolation: 'image', csiPlugin: { id: 'files', type: 'node' } } as const
    const events = new Recording(dockerTaskEvents(podman.docker, { hostId: 'elsewhere' }))
    const kinds = (): string[] => events.all.map(({ kind }) => kind)
    const run = async (script: string, hostId: string): Promise<void> => {
      const container = await podman.docker.createContainer({
        Image: image,
        Entrypoint: ['/bin/sh', '-c', script],
        Labels: containerLabels(hostId, task),
        HostConfig: { NetworkMode: 'none', Mounts: [{ Type: 'bind', Source: directory, Target: '/shared' }] },
      })
      ids.push(container.id)
      await container.start()
    }
    const ids: string[] = []
    try {
      await run('exit 1', 'nobody')
      await run('while [ ! -e /shared/end ]; do sleep 0.05; done; exit 3', 'elsewhere')
      await events.until(({ kind }) => kind === 'started')
      expect(kinds()).to.deep.equal(['prestart', 'started'])
      expect(events.all[1]).to.deep.include({ task })

      await podman.stopServing()
      writeFileSync(join(directory, 'end'), '')
      await podman.serve()
      const exited = await events.until(({ kind }) => kind === 'exited')
      expect(exited).to.include({ code: 3, signal: null, willRestart: false })
      await podman.docker.getContainer(ids.pop()!).remove({ force: true })
      await events.until(({ kind }) => kind === 'stopped')
      expect(kinds()).to.deep.equal(['prestart', 'started', 'exited', 'stopped'])
    } finally {
      events.stop()
      for (const id of ids) await podman.docker.getContainer(id).remove({ force: true })
    }
  })
})
