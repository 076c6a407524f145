import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { concat, NEVER, of, tap } from 'rxjs'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import { runTasks } from '../../streams/run-tasks.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { inDirectory, isHealthy, pluginTask, withHost } from './support.js'

describe('a plugin that does not get ready in time', () => {
  it('is started again by the runner, and is well when its next start is', () =>
    inDirectory(async (stateDir) => {
      const file = join(stateDir, 'script.json')
      const script = (text: PluginScript): void => writeFileSync(file, JSON.stringify(text))
      script({ ready: false })
      const spec: TaskSpec = {
        ...pluginTask({ csiPlugin: { id: 'ebs', type: 'node', initTimeoutMs: 50 } }),
        ...scriptedPluginCommand(file),
        restart: { minDelayMs: 1 },
      }
      const kinds: string[] = []
      await withHost(
        stateDir,
        {
          task$: (ports) =>
            runTasks(concat(of(spec), NEVER), processDriver(), ports).pipe(tap(({ kind }) => kinds.push(kind))),
        },
        async ({ restarts, health, notes, registry }) => {
          const request = await restarts.until(() => true)
          expect(request.reason).to.equal('not-ready')
          script({})
          await health.until(isHealthy)
          await notes.until(({ kind }) => kind === 'plugin-healthy')
          expect(kinds.slice(0, 5)).to.deep.equal(['prestart', 'started', 'exited', 'prestart', 'started'])
          expect(registry.all).to.have.length(1)
          expect(notes.all.slice(0, 2).map(({ kind }) => kind)).to.deep.equal(['plugin-unhealthy', 'restarting'])
          expect(notes.all[1]?.message).to.contain(
            'not ready after 50 ms: not-ready, it answers that it is not ready yet; its socket is expected at /',
          )
        },
      )
    }))
})
