import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { concat, NEVER, of, Subject, tap } from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import { PlugstreamError } from '../../lib/errors.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import type { StateStore } from '../../lib/store/state-store.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { TaskEvent } from '../../lib/task/task.js'
import { openHost } from '../../streams/host.js'
import { runTasks } from '../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { aStory, inDirectory, isHealthy, leavingNothing, pluginTask, withHost } from './support.js'

const run = promisify(execFile)
/** How far along a host is when it is closed, in turns of the event loop. */
const moments = [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584]

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await turn()
}

describe('a host that is closed', () => {
  it('while a plugin is on its way leaves nothing, whatever the moment', async () => {
    for (const count of moments)
      await aStory({}, async ({ host, start }) => {
        await start(pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } }))
        await turns(count)
        await host.close()
      })()
  }).timeout(60_000)

  it(
    'during a probe that hangs does not wait for it',
    aStory({}, async ({ host, start }) => {
      const plugin = await start(pluginTask(), { replies: { Probe: [{ fault: 'hang', repeat: true }] } })
      await plugin.waitForCall('Probe')
      const waiting = host.waitFor('csi-node', 'ebs', { healthy: true }).catch((failure: unknown) => failure)
      const [closing, again] = [host.close(), host.close()]
      expect(again).to.equal(closing)
      await closing
      expect(await waiting).to.include({ code: 'ERR_CLOSED' })
      await host[Symbol.asyncDispose]()
    }),
  )

  it(
    'during a call that hangs ends it, as soon as it has waited for it long enough',
    aStory({ timing: { closeTimeoutMs: 50 } }, async ({ host, start }) => {
      const plugin = await start(pluginTask({ csiPlugin: { id: 'ebs', type: 'controller' } }), {
        replies: { DeleteVolume: [{ fault: 'hang' }] },
      })
      await host.waitFor('csi-controller', 'ebs', { healthy: true })
      const { deleteVolume } = host.client<CsiClient>('csi-controller', 'ebs')
      const failure = deleteVolume({ volumeId: 'v' }).catch((thrown: unknown) => thrown)
      await plugin.waitForCall('DeleteVolume')
      await host.close()
      const { code, details } = (await failure) as PlugstreamError
      expect([code, details['outcome']]).to.deep.equal(['ERR_CLOSED', 'unknown'])
    }),
  )

  it(
    'in the pause of a call that is to be made again ends it at once',
    aStory({}, async ({ host, start }) => {
      const plugin = await start(pluginTask({ csiPlugin: { id: 'ebs', type: 'controller' } }), {
        replies: { DeleteVolume: [{ status: 'ABORTED', repeat: true }] },
      })
      await host.waitFor('csi-controller', 'ebs', { healthy: true })
      const { deleteVolume } = host.client<CsiClient>('csi-controller', 'ebs')
      let isOver = false
      const failure = deleteVolume({ volumeId: 'v' }).catch((thrown: unknown) => ((isOver = true), thrown))
      await plugin.waitForCall('DeleteVolume')
      await host.close()
      await turns(1)
      expect(isOver).to.equal(true)
      expect(((await failure) as PlugstreamError).details['outcome']).to.equal('unknown')
    }),
  )

  it(
    'by a subscriber that is being told something ends all the same',
    aStory({}, async ({ host, start, health }) => {
      let closing: Promise<void> | undefined
      host.health$.subscribe(() => void (closing ??= host.close()))
      await start(pluginTask())
      await health.until(isHealthy)
      await closing
    }),
  )

  it('while its store does not answer waits for closeTimeoutMs, and not longer', () =>
    inDirectory(async (stateDir) => {
      const memory = memoryStore()
      let saving = (): void => undefined
      const stuck = new Promise<void>((resolve) => (saving = resolve))
      const store: StateStore = {
        ...memory,
        save: () => {
          saving()
          return new Promise(() => undefined)
        },
      }
      await withHost(stateDir, { store, timing: { closeTimeoutMs: 50 } }, async ({ host, start }) => {
        await start(pluginTask())
        await stuck
        await host.close()
        expect(host.registry.list()).to.deep.equal([])
      })
    }))

  it('before it was open, since it could not be read, leaves its tasks and its directory to the next', () =>
    inDirectory((stateDir) =>
      leavingNothing(async () => {
        const task$ = new Subject<TaskEvent>()
        const memory = memoryStore()
        const store: StateStore = {
          ...memory,
          read: () => {
            throw new PlugstreamError('ERR_STORE_READ', 'no disk')
          },
        }
        const failure: unknown = await openHost({ stateDir, task$, store }).catch((thrown: unknown) => thrown)
        expect(failure).to.include({ code: 'ERR_STORE_READ' })
        expect(task$.observed).to.equal(false)
        await using host = await openHost({ stateDir, task$ })
        expect(host.registry.list()).to.deep.equal([])
      }),
    ))

  describe('with a runner', () => {
    const spec: TaskSpec = { ...pluginTask(), ...scriptedPluginCommand() }
    const idle: TaskSpec = { ...spec, command: ['sleep', '600'], env: {} }

    it('ends what is just being started, whatever the moment', async () => {
      for (const count of moments)
        await aStory(
          { task$: (ports) => runTasks(concat(of(idle), NEVER), processDriver(), ports) },
          async ({ host }) => {
            await turns(count)
            await host.close()
          },
        )()
    }).timeout(60_000)

    it('that keeps its tasks leaves them running, for the next host to find', () =>
      inDirectory(async (stateDir) => {
        let pid = 0
        const ran = (event: TaskEvent): void => {
          if (event.kind === 'started') pid = event.pid ?? 0
        }
        try {
          const host = await openHost({
            stateDir,
            task$: (ports) => runTasks(of(spec), processDriver(), ports, { onClose: 'keep' }).pipe(tap(ran)),
          })
          await host.waitFor('csi-node', 'ebs', { healthy: true })
          await host.close()
          expect(process.kill(pid, 0)).to.equal(true)
          const next = await openHost({ stateDir, task$: NEVER })
          await next.waitFor('csi-node', 'ebs', { healthy: true })
          await next.close()
        } finally {
          process.kill(pid, 'SIGKILL')
        }
      }))
  })

  describe('in a process with nothing else to do', () => {
    const program = fileURLToPath(new URL('programs/host.ts', import.meta.url))
    const loader = ['--import', createRequire(import.meta.url).resolve('tsx/esm')]

    for (const onClose of ['stop', 'keep'] as const)
      it(`lets the process end by itself: ${onClose}`, () =>
        inDirectory(async (stateDir) => {
          const { stdout, stderr } = await run(process.execPath, [...loader, program, stateDir, onClose], {
            timeout: 15_000,
          })
          expect(stderr).to.equal('')
          const [, pid] = /^pid (\d+)\ntrue ready\nclosed\n$/.exec(stdout) ?? [stdout]
          const end = (): boolean => process.kill(Number(pid), 'SIGKILL')
          if (onClose === 'keep') end()
          else expect(end).to.throw('ESRCH')
        }))
  })
})
