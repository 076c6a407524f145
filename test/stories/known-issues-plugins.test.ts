import { expect } from 'chai'
import { PlainServer } from '../support/sockets.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { aStory, isHealthy, ofAlloc, pluginTask, reasonsOf, shortTiming } from './support.js'

describe('a plugin that is', () => {
  // kubernetes-sigs/vsphere-csi-driver#2997, kubernetes/cloud-provider-openstack#1643
  it(
    'slower to answer a probe than probes are to come has one at a time, and is well',
    aStory({ timing: { heartbeatMs: 5 } }, async ({ host, tell, keep, health }) => {
      const task = pluginTask()
      tell('prestart', task)
      const { socketPath } = await host.prepare(task)
      const probes = { now: 0, most: 0 }
      const count = (rpc: string, by: 1 | -1): void => {
        if (rpc === 'Probe') probes.most = Math.max(probes.most, (probes.now += by))
      }
      const plugin = keep(
        await scriptedPlugin({
          socketPath,
          script: { replies: { Probe: [{ delayMs: 50, repeat: true }] } },
          onCall: async ({ rpc }) => count(rpc, 1),
          onEnd: ({ rpc }) => count(rpc, -1),
        }),
      )
      tell('started', task)
      await health.until(isHealthy)
      await plugin.waitForCall('Probe', 8)
      expect(probes.most).to.equal(1)
      expect(reasonsOf(health.all)).to.deep.equal(['ready'])
    }),
  )

  // kubernetes/kubernetes#132660
  it(
    'gone is not dialled any more, whoever is at its path',
    aStory({ timing: shortTiming }, async ({ health, registry, start, tell, problems }) => {
      const [gone, other] = [pluginTask({ allocId: 'gone' }), pluginTask({ allocId: 'other' })]
      const plugin = await start(gone)
      await health.until((event) => ofAlloc('gone')(event) && isHealthy(event))
      const living = await start(other)
      await health.until((event) => ofAlloc('other')(event) && isHealthy(event))
      tell('stopping', gone)
      await registry.until(({ kind, plugin: { allocId } }) => kind === 'deregistered' && allocId === 'gone')
      await plugin.close()
      await using server = await PlainServer.listen(plugin.socketPath)
      const before = living.calls.length
      await living.waitForCall('Probe', before + 5)
      expect(server.accepted).to.equal(0)
      expect(problems.all).to.deep.equal([])
    }),
  )
})
