import { expect } from 'chai'
import { aStory, isHealthy, pluginTask, shortTiming } from './support.js'

/** Nothing else happens in this process for so long. */
function stall(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

describe('a host that stands still for longer than a probe may take', () => {
  it(
    'calls nobody unhealthy for it',
    aStory(
      { timing: { ...shortTiming, rpcTimeoutMs: 100, fingerprintIntervalMs: 50 } },
      async ({ health, fingerprints, notes, spawn }) => {
        // A plugin of its own process, which answers while the host does not listen.
        const plugin = await spawn(pluginTask(), {
          replies: {
            Probe: [{ delayMs: 30, repeat: true }],
            NodeGetInfo: [{ delayMs: 30, repeat: true }],
          },
        })
        await fingerprints.until(isHealthy)
        const next = (rpc: 'Probe' | 'NodeGetInfo'): Promise<unknown> =>
          plugin.waitForCall(rpc, plugin.calls.filter((call) => call.rpc === rpc).length + 1)
        for (const rpc of ['Probe', 'Probe', 'NodeGetInfo', 'Probe'] as const) {
          await next(rpc) // it is on its way
          stall(300)
        }
        for (const rpc of ['Probe', 'Probe', 'NodeGetInfo'] as const) await next(rpc)
        expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
        expect(fingerprints.all.map(({ healthy }) => healthy)).to.deep.equal([true])
        expect(notes.all).to.have.length(1)
      },
    ),
  )
})
