import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Suite } from 'mocha'
import type { CsiServer } from 'plugstream/csi'
import { NEVER, ReplaySubject, tap } from 'rxjs'
import { hostpathCommand } from '../../examples/hostpath-driver/command.js'
import { PlugstreamError } from '../../lib/errors.js'
import { storeFile } from '../../lib/host/state-dir.js'
import { sqliteStore } from '../../lib/store/sqlite-store.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { TaskEvent } from '../../lib/task/task.js'
import type { VolumeEvent, VolumeState } from '../../lib/volume/volume.js'
import type { HostInit } from '../../streams/plugin-host.js'
import type { HostVolumes } from '../../streams/host-volumes.js'
import { runTasks } from '../../streams/run-tasks.js'
import { mountsBelow, unmountBelow } from '../interop/mounts.js'
import { needs } from '../support/needs.js'
import { Recording } from './recording.js'
import { Gate, watchedDriver } from './volumes-driver.js'
import { inDirectory, pluginTask, withHost, type Story } from './support.js'

/** A host with what it tells of its volumes. */
export interface VolumeStory extends Story {
  readonly volumes: HostVolumes
  readonly events: Recording<VolumeEvent>
  readonly states: Recording<readonly VolumeState[]>
}

/** The same with a task runner of its own. */
export interface DriverStory extends VolumeStory {
  /** Everything of the story lies below it. */
  readonly directory: string
  readonly tasks: Recording<TaskEvent>
  run(spec: TaskSpec): void
  order(task: TaskSpec, order: TaskOrder['order']): void
  /** The process that runs the task, once it has begun after what was skipped. */
  pidOf(task: Pick<TaskSpec, 'allocId'>): Promise<number>
}

/** A suite with real mounts. */
export function describeWithMounts(title: string, suite: (this: Suite) => void): void {
  describe(title, function () {
    before(function () {
      needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    })
    suite.call(this)
  })
}

/** A directory for a story with mounts: none of them is left, or it fails; in either case they are gone after it. */
export function inMountDirectory(tell: (directory: string) => Promise<void>): Promise<void> {
  return inDirectory(async (directory) => {
    try {
      await tell(directory)
      expect(mountsBelow(directory).map(({ path }) => path)).to.deep.equal([])
    } finally {
      if (process.platform === 'linux') unmountBelow(directory)
    }
  })
}

/** A host and its volumes. */
export function withVolumes(
  stateDir: string,
  init: Partial<HostInit>,
  tell: (story: VolumeStory) => Promise<void>,
): Promise<void> {
  return withHost(stateDir, init, async (story) => {
    const { volumes } = story.host
    const told = { events: new Recording(volumes.event$), states: new Recording(volumes.state$) }
    try {
      await tell({ ...story, ...told, volumes })
    } finally {
      await story.host.close()
      for (const [name, { end }] of Object.entries(told)) expect(end, name).to.equal('completed')
    }
  })
}

/** A host that runs drivers as its tasks. */
export function withDriver(
  directory: string,
  init: Partial<HostInit>,
  tell: (story: DriverStory) => Promise<void>,
  onClose: 'stop' | 'keep' = 'stop',
): Promise<void> {
  const input$ = new ReplaySubject<TaskSpec | TaskOrder>()
  const told$ = new ReplaySubject<TaskEvent>()
  const tasks = new Recording(told$)
  const run = { task$: runnerOf(input$, told$, onClose) }
  return withVolumes(join(directory, 'host'), { ...run, ...init }, (story) =>
    tell({
      ...story,
      directory,
      tasks,
      run: (spec) => input$.next(spec),
      order: ({ allocId, taskName }, order) => input$.next({ allocId, taskName, order }),
      pidOf: async ({ allocId }) => {
        const event = await tasks.until(({ kind, task }) => kind === 'started' && task.allocId === allocId)
        if (event.kind !== 'started' || event.pid === undefined) throw new Error('it has begun without a process')
        return event.pid
      },
    }),
  ).finally(() => tasks.stop())
}

function runnerOf(
  input$: ReplaySubject<TaskSpec | TaskOrder>,
  told$: ReplaySubject<TaskEvent>,
  onClose: 'stop' | 'keep',
): HostInit['task$'] {
  return (ports) => runTasks(input$, processDriver(), ports, { onClose }).pipe(tap((event) => told$.next(event)))
}

/** A story in a directory of its own, after which nothing is mounted, and nothing of a volume is on disk or on record. */
export function aDriverStory(tell: (story: DriverStory) => Promise<void>, init: Partial<HostInit> = {}) {
  return (): Promise<void> =>
    inMountDirectory(async (directory) => {
      await withDriver(directory, init, tell)
      await expectNothingLeft(join(directory, 'host'))
    })
}

/** A driver in this process, whose calls are seen and can be held. */
export interface WatchedDriver {
  readonly gate: Gate
  readonly allocId: string
  /** It is gone, as when its process has died. */
  end(): Promise<void>
  /** It is there again. */
  begin(): Promise<void>
}

/** A host whose drivers are in this process and registered by hand. */
export interface WatchedStory extends VolumeStory {
  readonly directory: string
  /** Starts a driver with the volumes of the directory; without `isRegistered`, the host has it on record already, or is not to know of it. */
  drive(allocId: string, isRegistered?: boolean): Promise<WatchedDriver>
}

/** Opens a host; its drivers are ended after it. */
export async function withWatched(
  directory: string,
  init: Partial<HostInit>,
  tell: (story: WatchedStory) => Promise<void>,
): Promise<void> {
  await withVolumes(join(directory, 'host'), { task$: NEVER, ...init }, (story) => {
    const drive: WatchedStory['drive'] = async (allocId, isRegistered = true) => {
      const socketPath = join(directory, `${allocId}.sock`)
      const gate = new Gate()
      let server: CsiServer | undefined
      const begin = async (): Promise<void> => {
        server = await watchedDriver({ socketPath, stateDir: join(directory, 'data'), at: gate.at })
      }
      const end = async (): Promise<void> => server?.close()
      await begin()
      story.keep({ close: end })
      if (isRegistered)
        for (const type of ['csi-controller', 'csi-node'])
          await story.host.registry.register({ type, name: 'disk', allocId, connection: { socketPath } })
      return { gate, allocId, begin, end }
    }
    return tell({ ...story, directory, drive })
  })
}

/** As `aDriverStory`, with drivers in this process. */
export function aWatchedStory(tell: (story: WatchedStory) => Promise<void>) {
  return (): Promise<void> =>
    inMountDirectory(async (directory) => {
      await withWatched(directory, {}, tell)
      await expectNothingLeft(join(directory, 'host'))
    })
}

/** No directory that a volume was at, and no record of one. */
export async function expectNothingLeft(stateDir: string): Promise<void> {
  const all = join(stateDir, 'csi', 'volumes')
  const roots = existsSync(all) ? readdirSync(all).map((name) => join(all, name)) : []
  expect(roots.flatMap((root) => readdirSync(root, { recursive: true }).filter(isBelow))).to.deep.equal([])
  expect(await volumeRecords(stateDir)).to.deep.equal([])
}

/** The keys of what the store of a host has of volumes. The host has to be closed. */
export async function volumeRecords(stateDir: string): Promise<string[]> {
  const store = await sqliteStore({ file: storeFile(stateDir) })
  try {
    const keys: string[] = []
    for await (const { key } of store.read('volume')) keys.push(key)
    return keys
  } finally {
    await store.close()
  }
}

/** `per-alloc` and `staging` themselves stay. */
const isBelow = (path: string | Buffer): boolean => !/^(per-alloc|staging)$/.test(String(path))

/** A task that runs the hostpath driver of the examples as a monolith named `disk`. */
export function diskDriver(directory: string, overrides: Partial<TaskSpec> = {}): TaskSpec {
  return {
    ...pluginTask({ csiPlugin: { id: 'disk', type: 'monolith' } }),
    command: hostpathCommand({ 'state-dir': join(directory, 'data'), 'node-id': 'n1' }),
    restart: { mode: 'always', minDelayMs: 1 },
    ...overrides,
  }
}

export const isMounted = ({ kind }: VolumeEvent): boolean => kind === 'mounted'

/** What a volume that nobody has seen yet is made with. */
export const mountAccess = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const

/** Makes a volume, and gives its id. */
export async function created({ volumes }: Pick<VolumeStory, 'volumes'>, name = 'data'): Promise<string> {
  const { volume } = await volumes.create({ plugin: 'disk', name, volumeCapabilities: [mountAccess] })
  return volume.volumeId
}

/** What work must fail with. */
export async function failureOf(work: Promise<unknown>): Promise<PlugstreamError> {
  const failure = await work.then(
    (answer) => expect.fail(`it answered ${String(answer)}`),
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  return failure as PlugstreamError
}

/** Allocs with the phase they are in, of every volume. */
export const phasesOf = (states: readonly VolumeState[]): string[] =>
  states.flatMap(({ claims }) => claims.map(({ allocId, phase }) => `${allocId} ${phase}`))
