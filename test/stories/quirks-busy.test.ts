import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import {
  aVolumeStory,
  diskTask,
  failureOf,
  mounting,
  requestsOf,
  startCounted,
  unmounting,
  use,
  volumeCalls,
} from './quirks-support.js'
import { inDirectory, reasonsOf } from './support.js'
import { phasesOf, withVolumes } from './volumes-support.js'

/** How long the driver is at it; a caller waits for `impatientMs`. */
const busyMs = 1_200
const impatientMs = 150

const locking = (replies: PluginScript['replies']): PluginScript => ({ locksVolumes: true, replies: replies ?? {} })

// Drivers have been seen to try a busy unmount for half a minute, and to refuse everything else about the volume meanwhile.
describe('a driver that is still busy with a volume', () => {
  it(
    'is asked again, ever less often, until it is not: an unmount does not fail for that',
    aVolumeStory(async (story) => {
      const { volumes, events, states } = story
      const busy = { status: 'INTERNAL', message: 'rmdir: Device or resource busy', delayMs: busyMs } as const
      const { plugin, counted } = await startCounted(story, diskTask(), locking({ NodeUnpublishVolume: [busy] }))
      const mounted = await volumes.mount(use)
      const failure = await failureOf(mounted.unmount({ timeoutMs: impatientMs }))
      expect(failure.code).to.equal('ERR_TIMEOUT')
      expect(failure.message).to.match(/\(NodeUnpublishVolume\)$/)
      states.skip()
      await mounted.unmount()
      expect(volumes.list()).to.deep.equal([])
      for (const state of states.fresh) expect(phasesOf(state)).to.satisfy((all: string[]) => all.every(isUnmounting))
      expect(events.all.map(({ kind }) => kind)).to.deep.equal(['mounted', 'unmounted'])
      const tries = requestsOf(plugin, 'NodeUnpublishVolume').length
      expect(tries).to.be.within(2, 2 + busyMs / 250)
      expect(volumeCalls(plugin).slice(-2)).to.deep.equal(unmounting.slice(1))
      expect(counted.mostAtOnce).to.equal(1)
    }),
  )

  // kubernetes/kubernetes#121357
  it(
    'unstaging it after nobody waited for that any more is done with that before it stages it anew',
    aVolumeStory(async (story) => {
      const { volumes } = story
      const script = locking({ NodeUnstageVolume: [{ delayMs: busyMs }] })
      const { plugin, counted } = await startCounted(story, diskTask('node'), script)
      const mounted = await volumes.mount(use)
      expect((await failureOf(mounted.unmount({ timeoutMs: impatientMs }))).code).to.equal('ERR_TIMEOUT')
      const unstage = await plugin.waitForCall('NodeUnstageVolume')
      await volumes.mount({ ...use, allocId: 'other' })
      const published = await plugin.waitForCall('NodePublishVolume', 2)
      expect(published.at - unstage.at).to.be.at.least(busyMs - 50)
      expect(phasesOf(volumes.list())).to.deep.equal(['other mounted'])
      expect(counted.mostAtOnce).to.equal(1)
      const last = plugin.calls.filter(({ rpc }) => rpc === 'NodeStageVolume' || rpc === 'NodeUnstageVolume').at(-1)
      expect(last?.rpc).to.equal('NodeStageVolume')
    }),
  )

  // kubernetes/kubernetes#82426
  it(
    'staging it after nobody waits for that any more keeps its directory until it has unstaged it',
    aVolumeStory(async ({ volumes, states, start }) => {
      const plugin = await start(diskTask('node'), locking({ NodeStageVolume: [{ delayMs: busyMs }] }))
      const failure = await failureOf(volumes.mount(use, { timeoutMs: impatientMs }))
      expect(failure.code).to.equal('ERR_TIMEOUT')
      const [{ staging_target_path: path } = {}] = requestsOf(plugin, 'NodeStageVolume')
      expect(existsSync(String(path))).to.equal(true)
      await plugin.reply('NodeUnstageVolume', { delayMs: impatientMs })
      await plugin.waitForCall('NodeUnstageVolume')
      expect(existsSync(String(path))).to.equal(true)
      states.skip()
      await states.until((all) => all.length === 0)
      expect(existsSync(String(path))).to.equal(false)
      expect(volumeCalls(plugin).at(-1)).to.equal('NodeUnstageVolume')
    }),
  )

  // container-storage-interface/spec#70
  it('for a host that was closed meanwhile is waited for by the next, and ends up with what that holds', () =>
    inDirectory(async (directory) => {
      const socketPath = join(directory, 'disk.sock')
      const script = locking({ NodeStageVolume: [{ delayMs: busyMs }] })
      await using plugin = await scriptedPlugin({ socketPath, script })
      const stateDir = join(directory, 'host')
      await withVolumes(stateDir, { task$: NEVER }, async ({ host, volumes }) => {
        await host.registry.register({ type: 'csi-node', name: 'disk', allocId: 'a1', connection: { socketPath } })
        const failing = failureOf(volumes.mount(use))
        await plugin.waitForCall('NodeStageVolume')
        await host.close()
        expect((await failing).code).to.equal('ERR_CLOSED')
      })
      await withVolumes(stateDir, { task$: NEVER }, async ({ volumes }) => {
        await volumes.mount(use)
        expect(phasesOf(volumes.list())).to.deep.equal(['web mounted'])
      })
      expect(volumeCalls(plugin).slice(-2)).to.deep.equal(['NodeStageVolume', 'NodePublishVolume'])
    }))

  // kubernetes-csi/csi-driver-smb#444, democratic-csi/democratic-csi#126
  it(
    'holds up no other volume, is well for all it says, and what it is asked about this one ends with the time of its caller',
    aVolumeStory(async ({ volumes, health, start }) => {
      const plugin = await start(diskTask(), locking({ ControllerPublishVolume: [{ fault: 'hang' }] }))
      await failureOf(volumes.mount(use, { timeoutMs: impatientMs }))
      const stuck = failureOf(volumes.mount({ ...use, allocId: 'other' }, { timeoutMs: busyMs }))
      await (await volumes.mount({ ...use, volumeId: 'v2' })).unmount()
      const failure = await stuck
      expect(failure).to.include({ code: 'ERR_TIMEOUT', retryable: true })
      const asked = plugin.calls.filter(({ request }) => request['volume_id'] === 'v2').map(({ rpc }) => rpc)
      expect(asked).to.deep.equal([...mounting, ...unmounting])
      expect(new Set(reasonsOf(health.all))).to.deep.equal(new Set(['ready']))
    }),
  )
})

const isUnmounting = (phase: string): boolean => phase === 'web unmounting'
