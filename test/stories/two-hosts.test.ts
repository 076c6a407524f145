import { expect } from 'chai'
import { NEVER, Subject } from 'rxjs'
import type { TaskEvent } from '../../lib/task/task.js'
import { openHost } from '../../streams/host.js'
import { aStory, inDirectory, isHealthy, leavingNothing, pluginTask } from './support.js'

describe('two hosts on one state directory', () => {
  it(
    'are one host: the second is refused, with the name of the first, which does not notice',
    aStory({}, async ({ stateDir, health, start, registry }) => {
      const task$ = new Subject<TaskEvent>()
      const refusal: unknown = await openHost({ stateDir, task$ }).catch((failure: unknown) => failure)
      expect(refusal).to.include({ code: 'ERR_STATE_LOCKED' })
      expect((refusal as Error).message).to.contain(`${stateDir} is in use by process ${process.pid} `)
      expect(task$.observed).to.equal(false)
      await start(pluginTask())
      await health.until(isHealthy)
      expect(registry.all).to.have.length(1)
    }),
  )

  it('that come at the same moment are one host, and the next may have it when that is closed', () =>
    inDirectory((stateDir) =>
      leavingNothing(async () => {
        for (const round of [1, 2, 3]) {
          const opened = await Promise.allSettled([1, 2, 3].map(() => openHost({ stateDir, task$: NEVER })))
          const hosts = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
          const refusals = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
          await Promise.all(hosts.map((host) => host.close()))
          expect(hosts, `round ${round}`).to.have.length(1)
          for (const refusal of refusals) expect(refusal).to.include({ code: 'ERR_STATE_LOCKED' })
        }
      }),
    ))
})
