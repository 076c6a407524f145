import { join } from 'node:path'
import { setTimeout as soon } from 'node:timers/promises'
import { expect } from 'chai'
import { config, throwError, type Observable, type Subject } from 'rxjs'
import { messageOf } from '../../lib/errors.js'
import type { CsiRpc } from '../../lib/csi/rpcs.js'
import type { TaskEvent } from '../../lib/task/task.js'
import { outlet } from '../../streams/outlets.js'
import type { Reply } from '../testing/plugin-script.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { aStory, because, isHealthy, ofAlloc, pluginTask, reasonsOf, shortTiming } from './support.js'

const hangs: Reply[] = [{ fault: 'hang', repeat: true }]
const rpcs: CsiRpc[] = ['Probe', 'GetPluginInfo', 'GetPluginCapabilities', 'NodeGetCapabilities', 'NodeGetInfo']
const hung = pluginTask({ allocId: 'hung' })
const well = pluginTask({ allocId: 'well' })

describe('nobody else notices', () => {
  it(
    'a plugin that hangs, before it was ready or after',
    aStory({ timing: { heartbeatMs: 100 } }, async ({ health, fingerprints, start }) => {
      const never = await start(pluginTask({ allocId: 'never' }), { replies: { Probe: hangs } })
      const later = await start(hung)
      await fingerprints.until((event) => ofAlloc('hung')(event) && isHealthy(event))
      await later.change({ replies: Object.fromEntries(rpcs.map((rpc) => [rpc, hangs])) })
      await never.waitForCall('Probe')
      await later.waitForCall('Probe', later.calls.filter(({ rpc }) => rpc === 'Probe').length + 1)

      await start(well)
      await health.until((event) => ofAlloc('well')(event) && isHealthy(event))
      await fingerprints.until((event) => ofAlloc('well')(event) && isHealthy(event))
      expect(reasonsOf(health.all.filter(ofAlloc('well')))).to.deep.equal(['ready'])
    }),
  )

  it(
    'a subscriber that throws; what it throws is uncaught',
    aStory({ timing: shortTiming }, async ({ host, health, registry, fingerprints, notes, nodes, start, tell }) => {
      const uncaught: unknown[] = []
      const { onUnhandledError } = config
      config.onUnhandledError = (failure) => uncaught.push(failure)
      try {
        const { event$, watch$, plugins$ } = host.registry
        const { health$, fingerprint$, note$, node$ } = host
        const streams = { health$, fingerprint$, note$, node$, event$, watch$, plugins$ }
        for (const [name, stream$] of Object.entries<Observable<unknown>>(streams))
          stream$.subscribe(() => {
            throw new Error(name)
          })
        await start(well)
        await health.until(isHealthy)
        await fingerprints.until(isHealthy)
        tell('stopping', well)
        await health.until(({ final }) => final)
        await fingerprints.until(({ final }) => final)
        await nodes.until(({ instances, seq }) => instances.length === 0 && seq === registry.all.at(-1)?.seq)
        expect(notes.all.map(({ kind }) => kind)).to.deep.equal(['plugin-healthy', 'plugin-unhealthy'])
        expect(registry.all.map(({ kind }) => kind)).to.deep.equal(['registered', 'deregistered'])
        await host.close()
        await soon() // what is thrown is told in a turn of its own
        expect(new Set(uncaught.map(messageOf))).to.have.all.keys(Object.keys(streams))
      } finally {
        config.onUnhandledError = onUnhandledError
      }
    }),
  )

  it(
    'a reader that never gets done with what it was told first',
    aStory({}, async ({ host, health, fingerprints, start, tell }) => {
      const read: number[] = []
      const reader = (async () => {
        const opened = new Promise((resolve) => host.note$.subscribe({ complete: () => resolve(true) }))
        for await (const item of outlet({ snapshot: () => read.length, change$: host.health$, maxBufferedCount: 2 })) {
          read.push('missed' in item ? item.missed : -1)
          await opened
        }
      })()
      await start(well)
      await fingerprints.until(isHealthy)
      tell('stopping', well)
      await health.until(({ final }) => final)
      await host.close()
      await reader
      expect(read).to.deep.equal([0, -1, -1])
    }),
  )

  for (const [what, end] of [
    ['fails', (task$: Subject<TaskEvent>) => task$.error(new Error('the scheduler is gone'))],
    ['completes', (task$: Subject<TaskEvent>) => task$.complete()],
  ] as const)
    it(
      `a task$ that ${what}: what it told before is followed on`,
      aStory({}, async ({ host, task$, health, registry, fingerprints, notes, problems, spawn, keep }) => {
        const plugin = await spawn(well)
        await fingerprints.until(isHealthy)
        end(task$)
        health.skip()
        plugin.kill('SIGKILL')
        await health.until(because('socket-refused'))
        await notes.until(({ kind }) => kind === 'plugin-unhealthy')
        health.skip()
        keep(await scriptedPlugin({ socketPath: plugin.socketPath }))
        await health.until(isHealthy)
        await notes.untilAll((all) => all[2])
        expect(registry.all).to.have.length(1)
        expect(host.registry.list()).to.have.length(1)
        expect(problems.all.map(({ message }) => message)).to.deep.equal(
          what === 'fails' ? ['task$ failed: the scheduler is gone'] : [],
        )
      }),
    )

  for (const [what, task$] of [
    ['that is no source after all', throwError(() => new Error('no source'))],
    [
      'of a function that throws',
      () => {
        throw new Error('no source')
      },
    ],
  ] as const)
    it(
      `a task$ ${what}: the host is open, and says so`,
      aStory({ task$ }, async ({ host, problems, health, keep, stateDir }) => {
        expect((await problems.until(() => true)).message).to.equal('task$ failed: no source')
        const socketPath = join(stateDir, 'a.sock')
        keep(await scriptedPlugin({ socketPath }))
        await host.registry.register({ type: 'csi-node', name: 'ebs', allocId: 'a1', connection: { socketPath } })
        await health.until(isHealthy)
      }),
    )
})
