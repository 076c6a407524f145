import { join } from 'node:path'
import { expect } from 'chai'
import Keyv from 'keyv'
import { defer, firstValueFrom, NEVER, of } from 'rxjs'
import { csiKind } from '../../lib/csi/kind.js'
import { snapshotIntervalMs } from '../../lib/defaults.js'
import type { PluginKind } from '../../lib/plugin/kind.js'
import type { TaskEvent } from '../../lib/task/task.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import { openHost } from '../../streams/host.js'
import { aStory, inDirectory, isHealthy, leavingNothing, pluginTask, withHost } from '../stories/support.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
}

describe('openHost', () => {
  const bad: readonly [field: string, init: object, words: string][] = [
    ['stateDir', { stateDir: '' }, 'stateDir is ""; it must be the path of a directory'],
    ['stateDir', { stateDir: 7 }, 'stateDir is 7'],
    ['task$', { task$: undefined }, 'task$ is undefined'],
    ['store', { store: {} }, 'store is an object; it must be a Keyv or a state store'],
    ['store', { store: null }, 'store is null'],
    ['nodeId', { nodeId: '' }, 'nodeId is ""'],
    ['timing.heartbeat', { timing: { heartbeat: 1 } }, 'timing.heartbeat is no field; there are heartbeatMs, '],
    ['timing.heartbeatMs', { timing: { heartbeatMs: -1 } }, 'timing.heartbeatMs is -1'],
    [
      'timing.heartbeatMs',
      { timing: { heartbeatMs: 2 ** 31 } },
      'it must be a number of milliseconds from 1 to 2147483647',
    ],
    ['kinds', { kinds: [{ ...csiKind(), kind: 'other' }] }, 'kinds is "csi-controller"'],
  ]
  for (const [field, init, words] of bad)
    it(`refuses what it cannot be opened with, naming the field: ${words}`, () =>
      inDirectory((stateDir) =>
        leavingNothing(async () => {
          const failure = await failureOf(openHost({ stateDir, task$: NEVER, ...init }))
          expect(failure).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
          expect((failure as Error).message).to.contain(words)
        }),
      ))

  it('refuses a Keyv that cannot iterate, and a state directory that cannot be made', () =>
    inDirectory((stateDir) =>
      leavingNothing(async () => {
        const store = new Keyv({
          store: { get: () => undefined, set: () => undefined, delete: () => false, clear: () => undefined },
        })
        const failure = await failureOf(openHost({ stateDir, task$: NEVER, store }))
        expect(failure).to.include({ code: 'ERR_OPTION_INVALID' })
        expect((failure as Error).message).to.contain('store')
        const below = await failureOf(openHost({ stateDir: join(stateDir, 'lock.sqlite', 'x'), task$: NEVER }))
        expect(below).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'stateDir' } })
      }),
    ))

  it('keeps everything in a Keyv that is handed in, and leaves it open', () =>
    inDirectory(async (stateDir) => {
      const records = new Map<string, unknown>()
      const store = new Keyv({ store: records })
      let disconnected = false
      store.on('disconnect', () => (disconnected = true))
      await withHost(stateDir, { store }, async ({ health, start }) => {
        await start(pluginTask())
        await health.until(isHealthy)
      })
      expect(disconnected).to.equal(false)
      await store.set('mine', 1)
      expect(await store.get('mine')).to.equal(1)
      await withHost(stateDir, { store }, async ({ registry, problems }) => {
        expect(registry.all.map(({ restored }) => restored)).to.deep.equal([true])
        expect(problems.all).to.deep.equal([])
      })
    }))

  it('does not close a state store that is handed in', () =>
    inDirectory(async (stateDir) => {
      let closed = false
      const memory = memoryStore()
      const store = { ...memory, close: async () => void (closed = true) }
      await withHost(stateDir, { store }, async () => undefined)
      expect(closed).to.equal(false)
    }))

  it('has a kind under the name of one that is built in take its place', () =>
    inDirectory(async (stateDir) => {
      const csi = csiKind()
      const asked: string[] = []
      const kind: PluginKind = {
        ...csi,
        open: (socketPath) => {
          asked.push(socketPath)
          return csi.open(socketPath)
        },
      }
      await withHost(stateDir, { kinds: [kind] }, async ({ health, start }) => {
        const { socketPath } = await start(pluginTask())
        await health.until(isHealthy)
        expect(asked).to.deep.equal([socketPath])
      })
    }))
})

describe('a host', () => {
  describe('waitFor', () => {
    it(
      'resolves with what is there, and with what comes',
      aStory({}, async ({ host, start }) => {
        const registered = host.waitFor('csi-node', 'ebs')
        const healthy = host.waitFor('csi-node', 'ebs', { healthy: true })
        await start(pluginTask())
        expect((await registered).allocId).to.equal('a1')
        const plugin = await healthy
        expect(plugin).to.equal(host.registry.get(plugin))
        expect(await host.waitFor('csi-node', 'ebs', { healthy: true, timeoutMs: 0 })).to.equal(plugin)
        expect(await host.waitFor('csi-node', 'ebs', { timeoutMs: 0 })).to.equal(plugin)
      }),
    )

    it(
      'waits for a healthy instance where there is a sick one',
      aStory({ timing: { heartbeatMs: 50, unhealthyBeatMs: 50 } }, async ({ host, health, start }) => {
        const plugin = await start(pluginTask())
        await health.until(isHealthy)
        await plugin.change({ ready: false })
        await health.until((event) => !isHealthy(event))
        const late = await failureOf(host.waitFor('csi-node', 'ebs', { healthy: true, timeoutMs: 1 }))
        expect(late).to.include({
          code: 'ERR_TIMEOUT',
          message: 'waiting for csi-node plugin "ebs" to be healthy: not within 1 ms',
        })
        const waiting = host.waitFor('csi-node', 'ebs', { healthy: true })
        await plugin.change({ ready: true })
        await waiting
      }),
    )

    it(
      'gives up in time, when it is told to, and when the host closes',
      aStory({}, async ({ host }) => {
        for (const healthy of [false, true]) {
          const wait = (options: object): Promise<unknown> =>
            failureOf(host.waitFor('csi-node', 'ebs', { healthy, ...options }))
          expect(await wait({ timeoutMs: 1 })).to.include({ code: 'ERR_TIMEOUT' })
          expect(await wait({ signal: AbortSignal.abort() })).to.include({ code: 'ERR_ABORTED' })
          const controller = new AbortController()
          const aborted = wait({ signal: controller.signal })
          controller.abort()
          expect(await aborted).to.include({ code: 'ERR_ABORTED' })
          expect(await wait({ timeoutMs: -1 })).to.include({ code: 'ERR_OPTION_INVALID' })
          expect(await failureOf(host.waitFor('', 'ebs', { healthy }))).to.include({ code: 'ERR_OPTION_INVALID' })
        }
        const waiting = [true, false].map((healthy) => failureOf(host.waitFor('csi-node', 'ebs', { healthy })))
        await host.close()
        for (const failure of await Promise.all(waiting)) expect(failure).to.include({ code: 'ERR_CLOSED' })
      }),
    )
  })

  it(
    'has its state at once for who asks, and tells a burst of changes in few',
    aStory({ nodeId: 'n1' }, async ({ host, nodes }) => {
      const [first] = nodes.all
      expect(first).to.deep.include({ nodeId: 'n1', version: 1, seq: 0, instances: [] })
      nodes.skip()
      const connection = { socketPath: '/nowhere/csi.sock' }
      const register = (allocId: string): Promise<unknown> =>
        host.registry.register({ type: 'csi-node', name: 'ebs', allocId, connection })
      await Promise.all(Array.from({ length: 50 }, (_, at) => register(`a${at}`)))
      const last = await nodes.until(({ seq }) => seq === 50)
      const told = nodes.fresh.slice(0, nodes.fresh.indexOf(last) + 1)
      // Not more than one for the first, and one for each interval since.
      const sinceMs = last.at - (told[0]?.at ?? 0)
      expect(told.length).to.be.at.most(1 + Math.ceil(sinceMs / snapshotIntervalMs))
      expect(told.map(({ version }) => version)).to.deep.equal(told.map((_, at) => at + 2))
      expect(last.instances.map(({ plugin: { allocId } }) => allocId)).to.have.length(50)
      expect(last.instances.map(({ current }) => current).lastIndexOf(true)).to.equal(49)
      let late: number | undefined
      host.node$.subscribe(({ seq }) => (late ??= seq)).unsubscribe()
      expect(late).to.equal(50)
    }),
  )

  describe('client', () => {
    it(
      'says why it cannot call',
      aStory({}, async ({ host, health }) => {
        expect(() => host.client('toy', 'ebs'))
          .to.throw()
          .with.include({ code: 'ERR_PLUGIN_UNKNOWN' })
        const client = host.client<{ nodeGetInfo(): Promise<unknown> }>('csi-node', 'ebs')
        expect(await failureOf(client.nodeGetInfo())).to.include({
          code: 'ERR_PLUGIN_UNKNOWN',
          message: 'csi-node plugin "ebs" is not registered',
        })
        const ref = { type: 'csi-node', name: 'ebs', allocId: 'a1' }
        await host.registry.register({ ...ref, connection: { socketPath: '/nowhere/csi.sock' } })
        await health.until(() => true)
        expect(await failureOf(client.nodeGetInfo())).to.include({
          code: 'ERR_PLUGIN_NOT_READY',
          message: 'csi-node plugin "ebs" cannot be called: there is no socket',
          retryable: true,
        })
      }),
    )

    it('is by default what the registry dispenses, bound to the current instance', () =>
      inDirectory((stateDir) =>
        withHost(
          stateDir,
          { dispensers: { 'csi-controller': ({ allocId }) => `mine of ${allocId}` } },
          async ({ host, health, keep }) => {
            const socketPath = join(stateDir, 'a.sock')
            keep(await scriptedPlugin({ socketPath }))
            for (const type of ['csi-controller', 'csi-node'])
              await host.registry.register({ type, name: 'ebs', allocId: 'a1', connection: { socketPath } })
            await health.until(({ plugin, healthy }) => healthy && plugin.type === 'csi-node')
            expect(host.registry.dispense('csi-controller', 'ebs')).to.equal('mine of a1')
            const client = host.registry.dispense<{ nodeGetInfo(): Promise<object> }>('csi-node', 'ebs')
            expect(Object.values(await client.nodeGetInfo())).to.include('node-1')
          },
        ),
      ))
  })

  it('tells nothing before who opened it could subscribe, of a source that tells everything at once either', () =>
    inDirectory((stateDir) =>
      leavingNothing(async () => {
        const bad = pluginTask({ csiPlugin: { id: '', type: 'node' } })
        for (const source of ['an observable', 'a function']) {
          let made = 0
          const event$ = defer(() => {
            made++
            return of<TaskEvent>({ kind: 'started', task: bad, at: 0 })
          })
          const opening = openHost({ stateDir, task$: source === 'a function' ? () => event$ : event$ })
          expect(made).to.equal(source === 'a function' ? 0 : 1) // one that is hot must not be missed
          await using host = await opening
          const note = await firstValueFrom(host.note$)
          expect(note.message).to.contain('csiPlugin.id')
          expect(made).to.equal(1)
        }
      }),
    ))
})
