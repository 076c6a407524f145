import { expect } from 'chai'
import { lastValueFrom, toArray, type Observable } from 'rxjs'
import type { TaskEvent } from '../../lib/task/task.js'
import { openHost } from '../../streams/host.js'
import type { HostInit } from '../../streams/plugin-host.js'
import { aStory, inDirectory, isHealthy, pluginTask } from './support.js'

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'none',
    (failure: unknown) => (failure as { code?: unknown }).code ?? failure,
  )
}

describe('what comes in by a door of the host', () => {
  it(
    'ends nothing where it is no task event, or one that throws when it is read',
    aStory({}, async ({ host, task$, health, problems, start }) => {
      const throwing = (from: number): TaskEvent => {
        let reads = 0
        return Object.defineProperty({ task: pluginTask({ allocId: `x${from}` }), at: 1 }, 'kind', {
          enumerable: true,
          get: () => {
            if (++reads > from) throw new Error('not any more')
            return 'started'
          },
        }) as TaskEvent
      }
      for (const event of [undefined, 'text', {}, throwing(0), throwing(1), throwing(2), throwing(3), throwing(4)])
        task$.next(event as TaskEvent)
      await problems.untilAll((all) => all[3])
      await start(pluginTask())
      const { plugin } = await health.until(isHealthy)
      expect(host.registry.get(plugin)).to.deep.equal(plugin)
    }),
  )

  it(
    'is taken as it was when it came',
    aStory({}, async ({ registry, task$, tell, start }) => {
      const task = pluginTask()
      await start(task)
      await registry.until(({ kind }) => kind === 'registered')
      task.allocId = 'another'
      tell('started', task)
      task$.next({ kind: 'stopped', task: pluginTask(), at: 1 })
      const gone = await registry.until(({ kind }) => kind === 'deregistered')
      expect(gone.plugin.allocId).to.equal('a1')
    }),
  )

  it('is refused where it is no source of task events', () =>
    inDirectory(async (stateDir) => {
      for (const task$ of [undefined, 5, {}, Promise.resolve()])
        expect(await failureOf(openHost({ stateDir, task$ } as unknown as HostInit))).to.equal('ERR_OPTION_INVALID')
    }))

  it(
    'is refused where it is a plugin of a type that no kind of the host has, and told where nobody waits for the answer',
    aStory({}, async ({ host, problems }) => {
      const plugin = { type: 'csi-nod', name: 'ebs', allocId: 'a1', connection: { socketPath: '/run/ebs.sock' } }
      const refused = await host.registry.register(plugin).catch((failure: unknown) => failure)
      expect(refused).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'type' } })
      expect((refused as Error).message).to.include('type is "csi-nod"; it must be one of csi-controller, csi-node')
      expect(await failureOf(host.registry.apply({ kind: 'register', plugin }))).to.equal('ERR_OPTION_INVALID')
      host.registry.next({ kind: 'register', plugin })
      expect((await problems.until(() => true)).details).to.deep.equal({ field: 'type' })
      expect(host.registry.list()).to.deep.equal([])
      expect(await host.registry.deregister(plugin)).to.equal(false)
    }),
  )

  it('gives nothing of what was, once the host is closed', async () => {
    let late: unknown[] = []
    await aStory({}, async ({ host, health, start }) => {
      await start(pluginTask())
      await health.until(isHealthy)
      const client = host.client<{ nodeGetInfo(): Promise<unknown> }>('csi-node', 'ebs')
      await host.close()
      const heard: unknown[] = []
      host.health$.subscribe((event) => heard.push(event))
      host.fingerprint$.subscribe((event) => heard.push(event))
      const { registry, volumes } = host
      const seen = [
        host.health$,
        host.fingerprint$,
        host.node$,
        host.note$,
        host.restart$,
        volumes.state$,
        volumes.event$,
      ]
      for (const all$ of [...seen, registry.event$] as Observable<unknown>[])
        heard.push(...(await lastValueFrom(all$.pipe(toArray()))))
      // What is on record is so whether anybody looks or not.
      const [present] = await lastValueFrom(registry.watch$.pipe(toArray()))
      expect([present?.plugin]).to.deep.equal(registry.list()).and.have.length(1)
      expect(await lastValueFrom(registry.plugins$)).to.deep.equal(registry.list())
      late = [
        ...heard,
        await failureOf(host.waitFor('csi-node', 'ebs', { healthy: true })),
        await failureOf(client.nodeGetInfo()),
        await failureOf(host.prepare(pluginTask())),
      ]
    })()
    expect(late).to.deep.equal(['ERR_CLOSED', 'ERR_CLOSED', 'ERR_CLOSED'])
  })
})
