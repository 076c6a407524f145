import { expect } from 'chai'
import type { HealthReason } from '../../lib/plugin/health.js'
import type { PluginScript, Reply } from '../testing/plugin-script.js'
import { aStory, because, isHealthy, pluginTask, shortTiming } from './support.js'

const always = (reply: Reply): PluginScript => ({ replies: { Probe: [{ ...reply, repeat: true }] } })

describe('a plugin whose Probe', () => {
  for (const [what, script] of [
    ['says nothing of being ready', { ready: 'unset' }],
    ['is not implemented', always({ status: 'UNIMPLEMENTED' })],
  ] as const)
    it(
      `${what} is ready`,
      aStory({ timing: shortTiming }, async ({ health, fingerprints, start }) => {
        const plugin = await start(pluginTask(), script)
        await health.until(isHealthy)
        await fingerprints.until(isHealthy)
        await plugin.waitForCall('Probe', 4)
        expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
      }),
    )

  const sick: [what: string, script: PluginScript, reason: HealthReason, description: RegExp][] = [
    ['says that it is not ready', { ready: false }, 'not-ready', /^it answers that it is not ready yet$/],
    [
      'says that something has to be done first',
      always({ status: 'FAILED_PRECONDITION', message: 'no credentials' }),
      'probe-failed',
      /^Probe failed: FAILED_PRECONDITION: no credentials$/,
    ],
    ['fails', always({ status: 'INTERNAL', message: 'oh no' }), 'probe-failed', /^Probe failed: INTERNAL: oh no$/],
    [
      'says by itself that it is unavailable',
      always({ status: 'UNAVAILABLE', message: 'busy' }),
      'probe-failed',
      /^Probe failed: UNAVAILABLE: busy$/,
    ],
    ['is never answered', always({ fault: 'hang' }), 'probe-timeout', /did not answer two probes of 100 ms$/],
    ['always drops the connection', always({ fault: 'disconnect' }), 'disconnected', /./],
  ]
  for (const [what, script, reason, description] of sick)
    it(
      `${what} is unhealthy: ${reason}`,
      aStory({ timing: shortTiming }, async ({ health, fingerprints, notes, restarts, start }) => {
        const plugin = await start(pluginTask())
        await fingerprints.until(isHealthy)
        health.skip()
        fingerprints.skip()
        await plugin.change(script)
        const event = await health.until(because(reason))
        expect(event.healthy).to.equal(false)
        expect(event.description).to.match(description)
        expect(health.fresh).to.have.length(1)
        await fingerprints.until(({ healthy }) => !healthy)

        await plugin.change({ ready: true, replies: {} })
        await health.until(isHealthy)
        await fingerprints.until(isHealthy)
        await notes.untilAll((all) => all[2])
        expect(notes.all.map(({ kind }) => kind)).to.deep.equal([
          'plugin-healthy',
          'plugin-unhealthy',
          'plugin-healthy',
        ])
        expect(restarts.all).to.deep.equal([])
      }),
    )
})
