import { expect } from 'chai'
import { ReplaySubject } from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import { openHost } from '../../streams/host.js'
import { runTasks } from '../../streams/run-tasks.js'
import { Recording } from './recording.js'
import { inDirectory, isHealthy, leavingNothing, ofAlloc } from './support.js'
import { controller, pluginSpec, upgradeTiming } from './upgrade-support.js'

describe('a host that ends in the midst of an upgrade', () => {
  const old = pluginSpec('old', { version: '1' }, controller)
  const young = pluginSpec('new', { version: '2' }, controller)
  const timing = { ...upgradeTiming, bakeMs: 60_000 }
  const specsOf = (...specs: TaskSpec[]): ReplaySubject<TaskSpec | TaskOrder> => {
    const input$ = new ReplaySubject<TaskSpec | TaskOrder>()
    for (const spec of specs) input$.next(spec)
    return input$
  }
  const open = (stateDir: string, input$: ReplaySubject<TaskSpec | TaskOrder>, onClose: 'stop' | 'keep') =>
    openHost({ stateDir, timing, task$: (ports) => runTasks(input$, processDriver(), ports, { onClose }) })

  for (const [wanted, unwanted, version] of [
    [old, young, '1'],
    [young, old, '2'],
  ] as const)
    it(`leaves both tasks, of which the next one goes on with the one that it is told to: the ${wanted.allocId} one`, () =>
      inDirectory((stateDir) =>
        leavingNothing(async () => {
          {
            await using host = await open(stateDir, specsOf(old), 'keep')
            const health = new Recording(host.health$)
            await health.until(isHealthy)
            const upgrade = host.replace(young).catch((failure: unknown) => failure)
            await health.until((event) => ofAlloc('new')(event) && isHealthy(event))
            await host.close()
            expect(await upgrade).to.include({ code: 'ERR_CLOSED' })
          }
          const input$ = specsOf(old, young)
          await using host = await open(stateDir, input$, 'stop')
          const health = new Recording(host.health$)
          for (const one of ['old', 'new']) await health.until((event) => ofAlloc(one)(event) && isHealthy(event))
          const { allocId, taskName } = unwanted
          input$.next({ order: 'stop', allocId, taskName })
          await health.until((event) => ofAlloc(allocId)(event) && event.final)
          const present = host.registry.instances('csi-controller', 'ebs')
          expect(present.map((instance) => instance.allocId)).to.deep.equal([wanted.allocId])
          const { vendorVersion } = await host.client<CsiClient>('csi-controller', 'ebs').getPluginInfo()
          expect(vendorVersion).to.equal(version)
        }),
      ))
})
