import { expect } from 'chai'
import { concat, NEVER, of, tap } from 'rxjs'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { TaskEvent } from '../../lib/task/task.js'
import { runTasks } from '../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { aStory, because, isHealthy, ofType, pluginTask, reasonsOf } from './support.js'

describe('a task that crashes three times in a row', () => {
  const spec: TaskSpec = {
    ...pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } }),
    ...scriptedPluginCommand(),
    restart: { minDelayMs: 10, maxDelayMs: 10 },
  }
  let pids: number[]
  const ran = (event: TaskEvent): void => {
    if (event.kind === 'started' && event.pid !== undefined) pids.push(event.pid)
  }

  it(
    'is one registration, one note an edge, and back each time',
    aStory(
      {
        task$: (ports) => {
          pids = []
          return runTasks(concat(of(spec), NEVER), processDriver(), ports).pipe(tap(ran))
        },
      },
      async ({ host, registry, health, fingerprints, notes, restarts }) => {
        const bothHealthy = async (): Promise<void> => {
          for (const type of ['csi-controller', 'csi-node']) {
            await health.until((event) => ofType(type)(event) && isHealthy(event))
            await fingerprints.until((event) => ofType(type)(event) && isHealthy(event))
          }
        }
        await bothHealthy()
        for (const crash of [1, 2, 3]) {
          health.skip()
          fingerprints.skip()
          process.kill(pids.at(-1) ?? 0, 'SIGKILL')
          await health.until(because('task-exited'))
          await bothHealthy()
          await notes.untilAll((all) => all[2 * crash])
        }
        expect(new Set(pids).size).to.equal(4)
        expect(notes.all.map(({ kind }) => kind)).to.deep.equal([
          'plugin-healthy',
          ...Array.from({ length: 3 }, () => ['plugin-unhealthy', 'plugin-healthy']).flat(),
        ])
        // Whichever is heard first, the exit or the socket of the dead process, gives the reason.
        for (const { kind, reason } of notes.all) {
          expect(reason).to.be.oneOf(kind === 'plugin-healthy' ? ['ready'] : ['task-exited', 'socket-refused'])
        }
        expect(registry.all.map(({ kind }) => kind)).to.deep.equal(['registered', 'registered'])
        expect(host.registry.list()).to.have.length(2)
        expect(restarts.all).to.deep.equal([])
        for (const type of ['csi-controller', 'csi-node']) {
          const ups = health.all.filter((event) => ofType(type)(event) && isHealthy(event))
          expect(ups, reasonsOf(health.all).join()).to.have.length(4)
        }
      },
    ),
  )
})
