import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect } from 'chai'
import type { ScriptedPlugin } from '../testing/scripted-plugin.js'
import { aStory, because, isHealthy, pluginTask, shortTiming } from './support.js'

const callsOf = ({ calls }: ScriptedPlugin, rpc: string): number => calls.filter((call) => call.rpc === rpc).length

describe('a socket that changes and is the same', () => {
  it(
    'is not taken for another where its mode is changed after it was bound',
    aStory({ timing: shortTiming }, async ({ health, fingerprints, start }) => {
      const plugin = await start(pluginTask())
      await fingerprints.until(isHealthy)
      const asked = callsOf(plugin, 'GetPluginInfo')
      await plugin.chmodSocket(0o666)
      await plugin.waitForCall('Probe', callsOf(plugin, 'Probe') + 3)
      expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
      expect(fingerprints.all).to.have.length(1)
      expect(callsOf(plugin, 'GetPluginInfo')).to.equal(asked)
    }),
  )

  it(
    'is healthy where its server closes idle connections, and is looked at once in a while',
    aStory({ timing: { relookMs: 200 } }, async ({ health, fingerprints, start, notes }) => {
      const plugin = await start(pluginTask(), { idleConnectionMs: 10 })
      await fingerprints.until(isHealthy)
      const [before, after] = [await plugin.waitForCall('Probe', 2), await plugin.waitForCall('Probe', 7)]
      // Five looks, of which the first may follow the one before it at once.
      expect(after.at - before.at).to.be.at.least(4 * 200 - 50)
      expect(callsOf(plugin, 'NodeGetInfo')).to.be.at.most(callsOf(plugin, 'Probe'))
      expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
      expect(fingerprints.all.map(({ healthy }) => healthy)).to.deep.equal([true])
      expect(notes.all).to.have.length(1)
    }),
  )

  it(
    'is still watched where its directory was removed and made again',
    aStory({}, async ({ health, fingerprints, start }) => {
      const task = pluginTask()
      const plugin = await start(task)
      await fingerprints.until(isHealthy)
      for (const version of ['2.0.0', '3.0.0']) {
        health.skip()
        fingerprints.skip()
        await rm(dirname(plugin.socketPath), { recursive: true })
        await health.until(because('socket-missing'))
        await fingerprints.until((fingerprint) => !isHealthy(fingerprint))
        await start(task, { version })
        await health.until(isHealthy)
        const { plugin: now } = await fingerprints.until(isHealthy)
        expect(now.version).to.equal(version)
      }
    }),
  )
})
