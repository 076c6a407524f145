import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { CsiChannel } from '../../../lib/csi/channel.js'
import { csiClient, type CsiClientInit } from '../../../lib/csi/client.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { PluginScript } from '../../testing/plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../../testing/scripted-plugin.js'

/** The client where the types of single calls do not matter. */
export type AnyClient = Record<string, (request?: unknown, options?: object) => Promise<unknown>>

const rule = { minDelayMs: 1, maxDelayMs: 1, retries: Infinity }
/** Like the real one, but in no time. */
export const policy = {
  UNAVAILABLE: rule,
  DEADLINE_EXCEEDED: rule,
  ABORTED: rule,
  RESOURCE_EXHAUSTED: { ...rule, retries: 3 },
}

export const mount = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
export const staged = { volumeId: 'v', stagingTargetPath: '/s', volumeCapability: mount }
export const volume = { name: 'v', volumeCapabilities: [mount] }

/** Plugins and clients of them that end with the test; to be called in the suite. */
export function clientsOfPlugins() {
  let directory: string
  let count = 0
  const opened: { close(): Promise<void> }[] = []

  before(async () => (directory = await mkdtemp(join(tmpdir(), 'ps-'))))
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  })
  after(() => rm(directory, { recursive: true }))

  async function start(script: PluginScript = {}): Promise<{ plugin: ScriptedPlugin; channel: CsiChannel }> {
    const plugin = await scriptedPlugin({ socketPath: join(directory, `${++count}.sock`), script })
    const channel = new CsiChannel(plugin.socketPath, 10_000)
    opened.push(plugin, channel)
    return { plugin, channel }
  }
  async function connect(script?: PluginScript, init: Partial<CsiClientInit> = {}) {
    const { plugin, channel } = await start(script)
    const client = csiClient({ pick: () => channel, policy, ...init })
    return { plugin, channel, client, asked: () => plugin.calls.map(({ rpc }) => rpc) }
  }
  return { start, connect }
}

export async function all<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const found = []
  for await (const one of iterable) found.push(one)
  return found
}

export function show(value: unknown): string {
  const text = JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one)) as
    string | undefined
  return text ?? 'undefined'
}

export async function caught(promise: Promise<unknown>): Promise<PlugstreamError> {
  const failure: unknown = await promise.then(
    (value) => `resolved to ${show(value)}`,
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  return failure as PlugstreamError
}
