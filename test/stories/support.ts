import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Subject } from 'rxjs'
import type { PlugstreamError } from '../../lib/errors.js'
import type { PluginFingerprint } from '../../lib/plugin/fingerprint.js'
import type { HealthEvent, HealthReason } from '../../lib/plugin/health.js'
import type { NodeSnapshot } from '../../lib/plugin/node-snapshot.js'
import type { PluginInfo, PluginType, RegistryEvent } from '../../lib/plugin/plugin.js'
import type { PluginTask, RestartRequest, TaskEvent, TaskNote } from '../../lib/task/task.js'
import { openHost } from '../../streams/host.js'
import type { HostInit, PluginHost } from '../../streams/plugin-host.js'
import { leftSince, inUse } from '../support/in-use.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import { spawnScriptedPlugin, type SpawnedPlugin } from '../testing/spawn-scripted-plugin.js'
import { Recording } from './recording.js'

/** Timing for stories that wait for a timer: the same order of things, in less time. */
export const shortTiming = { heartbeatMs: 100, unhealthyBeatMs: 50, probeTimeoutMs: 100, relookMs: 50 }

/** A directory of a story's own, gone after it. */
export async function inDirectory(tell: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'ps-'))
  try {
    await tell(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** What `tell` opens is closed when it ends: nothing is in use that was not before. */
export async function leavingNothing(tell: () => Promise<void>): Promise<void> {
  const before = await inUse()
  await tell()
  expect(await leftSince(before)).to.deep.equal([])
}

/** A host with everything it tells. */
export interface Story {
  readonly host: PluginHost
  readonly stateDir: string
  readonly health: Recording<HealthEvent>
  readonly registry: Recording<RegistryEvent>
  readonly fingerprints: Recording<PluginFingerprint>
  readonly notes: Recording<TaskNote>
  readonly nodes: Recording<NodeSnapshot>
  readonly restarts: Recording<RestartRequest>
  readonly problems: Recording<PlugstreamError>
  /** Where the host's task events come from. */
  readonly task$: Subject<TaskEvent>
  /** Tells the host what happened to a task. */
  tell(kind: 'prestart' | 'started' | 'stopping' | 'stopped', task: PluginTask): void
  exited(task: PluginTask, willRestart: boolean): void
  /** What a host application does: prepares the task, starts its plugin in this process, and tells of both. */
  start(task: PluginTask, script?: PluginScript): Promise<ScriptedPlugin>
  /** The same with a plugin that is a process. */
  spawn(task: PluginTask, script?: PluginScript): Promise<SpawnedPlugin>
  /** Closes the plugin when the story ends. */
  keep<P extends { close(): Promise<void> }>(plugin: P): P
}

/** Opens a host in `stateDir`, tells the story, closes the host; in the end the plugins too. Checks that nothing is left. */
export function withHost(
  stateDir: string,
  init: Partial<HostInit>,
  tell: (story: Story) => Promise<void>,
): Promise<void> {
  return leavingNothing(async () => {
    const task$ = new Subject<TaskEvent>()
    const plugins: { close(): Promise<void> }[] = []
    const host = await openHost({ stateDir, task$, ...init })
    const recordings = {
      health: new Recording(host.health$),
      registry: new Recording(host.registry.watch$),
      fingerprints: new Recording(host.fingerprint$),
      notes: new Recording(host.note$),
      nodes: new Recording(host.node$),
      restarts: new Recording(host.restart$),
      problems: new Recording(host.problem$),
    }
    const story: Story = {
      host,
      stateDir,
      task$,
      ...recordings,
      tell: (kind, task) => task$.next({ kind, task, at: Date.now() }),
      exited: (task, willRestart) =>
        task$.next({ kind: 'exited', task, at: Date.now(), code: 1, signal: null, willRestart }),
      start: (task, script) => begin(task, (socketPath) => scriptedPlugin({ socketPath, ...(script && { script }) })),
      spawn: (task, script) =>
        begin(task, (socketPath) => spawnScriptedPlugin({ socketPath, ...(script && { script }) })),
      keep: (plugin) => {
        plugins.push(plugin)
        return plugin
      },
    }
    const begin = async <P extends ScriptedPlugin>(task: PluginTask, run: (path: string) => Promise<P>): Promise<P> => {
      story.tell('prestart', task)
      const { socketPath } = await host.prepare(task)
      const plugin = story.keep(await run(socketPath))
      story.tell('started', task)
      return plugin
    }
    try {
      await tell(story)
    } finally {
      try {
        await host.close()
        for (const [name, { end }] of Object.entries(recordings)) expect(end, name).to.equal('completed')
      } finally {
        await Promise.all(plugins.map((plugin) => plugin.close()))
      }
    }
  })
}

/** A host in a directory of its own. */
export function aStory(init: Partial<HostInit>, tell: (story: Story) => Promise<void>): () => Promise<void> {
  return () => inDirectory((directory) => withHost(directory, init, tell))
}

export function pluginTask(overrides: Partial<PluginTask> = {}): PluginTask {
  return {
    allocId: 'a1',
    taskName: 'driver',
    isolation: 'none',
    csiPlugin: { id: 'ebs', type: 'node' },
    ...overrides,
  }
}

type About = { plugin: PluginInfo }

/** What is about one type of plugin, or one alloc. */
export const ofType =
  (type: PluginType) =>
  ({ plugin }: About): boolean =>
    plugin.type === type
export const ofAlloc =
  (allocId: string) =>
  ({ plugin }: About): boolean =>
    plugin.allocId === allocId

export const isHealthy = ({ healthy }: { healthy: boolean }): boolean => healthy
export const because =
  (reason: HealthReason) =>
  (event: { reason: HealthReason }): boolean =>
    event.reason === reason

/** Health in words, as `a1 ready`. */
export const reasonsOf = (events: readonly HealthEvent[]): string[] => events.map(({ reason }) => reason)
export const kindsOf = (events: readonly RegistryEvent[]): string[] => events.map(({ kind }) => kind)
