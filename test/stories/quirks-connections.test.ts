import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { aVolumeStory, block, diskTask, mounting, requestsOf, unmounting, use, volumeCalls } from './quirks-support.js'
import { aStory, because, inDirectory, isHealthy, reasonsOf } from './support.js'
import { withDriver } from './volumes-support.js'

describe('a driver', () => {
  // kubernetes-csi/external-provisioner#1099, rook/rook#13458, longhorn/longhorn#10092
  it(
    'that closes idle connections loses no call, and is taken for well all the while',
    aVolumeStory(async ({ volumes, health, start }) => {
      const plugin = await start(diskTask(), { idleConnectionMs: 20 })
      for (let round = 0; round < 5; round++) await (await volumes.mount(use)).unmount()
      const calls = volumeCalls(plugin).filter((rpc, at, all) => rpc !== all[at - 1]) // one that was lost is made again
      expect(calls).to.deep.equal(Array.from({ length: 5 }, () => [...mounting, ...unmounting]).flat())
      expect(new Set(reasonsOf(health.all))).to.deep.equal(new Set(['ready']))
    }),
  )

  it(
    'that drains, with its socket gone and a call under way, finishes that call, and is not asked twice',
    aStory({}, async ({ host, health, start }) => {
      const plugin = await start(diskTask('controller'), { replies: { CreateVolume: [{ delayMs: 300 }] } })
      await health.until(isHealthy)
      const created = host.client<CsiClient>('csi-controller', 'disk').createVolume({
        name: 'data',
        volumeCapabilities: [block],
      })
      await plugin.waitForCall('CreateVolume')
      await plugin.unlinkSocket()
      await health.until(because('socket-missing'))
      expect((await created).volume.volumeId).to.equal('data')
      expect(requestsOf(plugin, 'CreateVolume')).to.have.length(1)
    }),
  )

  it('that ends with a code of its own when it is stopped has been stopped, and is not started again', () =>
    inDirectory((directory) =>
      withDriver(directory, {}, async (story) => {
        const spec = { ...diskTask('node'), ...scriptedPluginCommand({ exitCode: 15 }) }
        story.run(spec)
        await story.health.until(isHealthy)
        story.order(spec, 'stop')
        const exited = await story.tasks.until(({ kind }) => kind === 'exited')
        expect(exited).to.include({ code: 15, signal: null, willRestart: false })
        await story.tasks.until(({ kind }) => kind === 'stopped')
        expect(story.tasks.all.map(({ kind }) => kind)).to.deep.equal([
          'prestart',
          'started',
          'stopping',
          'exited',
          'stopped',
        ])
        expect(story.health.all.at(-1)).to.include({ healthy: false, final: true, reason: 'stopping' })
      }),
    ))
})
