import { join } from 'node:path'
import { expect } from 'chai'
import { filter, firstValueFrom, NEVER } from 'rxjs'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
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
import { because, inDirectory, isHealthy } from './support.js'
import { phasesOf, withVolumes, type VolumeStory } from './volumes-support.js'

const problemsOf = ({ volumes }: VolumeStory): (string | undefined)[] =>
  volumes.list().flatMap(({ claims }) => claims.map(({ problem }) => problem))

/** A volume is mounted, its host is closed, and opened again on what it knew. */
async function reopened(
  script: PluginScript,
  tell: (story: VolumeStory, plugin: ScriptedPlugin) => Promise<void>,
  between: (plugin: ScriptedPlugin) => Promise<unknown> = async () => undefined,
): Promise<void> {
  await inDirectory(async (directory) => {
    const socketPath = join(directory, 'disk.sock')
    const stateDir = join(directory, 'host')
    await using plugin = await scriptedPlugin({ socketPath, script })
    await withVolumes(stateDir, { task$: NEVER }, async ({ host, volumes }) => {
      await host.registry.register({ type: 'csi-node', name: 'disk', allocId: 'a1', connection: { socketPath } })
      await volumes.mount(use)
    })
    await between(plugin)
    await withVolumes(stateDir, { task$: NEVER }, (story) => tell(story, plugin))
  })
}

describe('a volume that a plugin does not know', () => {
  const notFound = { status: 'NOT_FOUND', message: 'volume v1 is not there' } as const

  // kubernetes/kubernetes#135736
  it(
    'is not staged over and over: the mount fails with that, is undone, and can be made again',
    aVolumeStory(async ({ volumes, start }) => {
      const plugin = await start(diskTask('node'), { replies: { NodeStageVolume: [notFound] } })
      const failure = await failureOf(volumes.mount(use))
      expect(failure).to.include({ code: 'ERR_CSI_RPC', retryable: false })
      expect(failure.message).to.equal('NodeStageVolume failed: NOT_FOUND: volume v1 is not there')
      expect(volumeCalls(plugin)).to.deep.equal(['NodeStageVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'])
      expect(volumes.list()).to.deep.equal([])
      await volumes.mount(use)
      expect(phasesOf(volumes.list())).to.deep.equal(['web mounted'])
    }),
  )

  it('though it is on record as mounted is kept, says so, and is asked for again after a pause', () =>
    reopened(
      {},
      async (story, plugin) => {
        await story.events.until(({ kind }) => kind === 'kept')
        expect(phasesOf(story.volumes.list())).to.deep.equal(['web mounted'])
        const shown = story.states.all.flatMap((state) => state.flatMap(({ claims }) => claims))
        expect(shown.map(({ problem }) => problem)).to.include(
          'NodeStageVolume failed: NOT_FOUND: volume v1 is not there',
        )
        expect(volumeCalls(plugin)).to.not.include('NodeUnpublishVolume')
        expect(requestsOf(plugin, 'NodeStageVolume')).to.have.length(1 + 2)
      },
      (plugin) => plugin.reply('NodeStageVolume', notFound),
    ))
})

describe('a volume that was mounted before its host was opened again', () => {
  // hetznercloud/csi-driver#172, longhorn/longhorn#2629: not every driver is as idempotent as it has to be.
  it('is not taken away from its user where the plugin refuses to stage it twice, and can be unmounted', () =>
    reopened(
      {},
      async (story, plugin) => {
        await story.states.until(() => problemsOf(story).some((problem) => problem !== undefined))
        expect(phasesOf(story.volumes.list())).to.deep.equal(['web uncertain'])
        expect(problemsOf(story)).to.deep.equal(['NodeStageVolume failed: ALREADY_EXISTS: it is staged'])
        expect(volumeCalls(plugin)).to.not.include('NodeUnpublishVolume')
        await story.volumes.unmount(use)
        expect(volumeCalls(plugin).slice(-2)).to.deep.equal(['NodeUnpublishVolume', 'NodeUnstageVolume'])
        expect(story.volumes.list()).to.deep.equal([])
      },
      (plugin) => plugin.reply('NodeStageVolume', { status: 'ALREADY_EXISTS', message: 'it is staged', repeat: true }),
    ))

  // kubernetes/kubernetes#72500, #91758
  it('and is to be unmounted before its plugin is there waits for that, and is not given up', () =>
    reopened(
      {},
      async (story, { socketPath }) => {
        const failure = await failureOf(story.volumes.unmount(use, { timeoutMs: 100 }))
        expect(failure).to.include({ code: 'ERR_TIMEOUT', retryable: true })
        expect(failure.message).to.match(/\(waiting for its plugin\)$/)
        expect(phasesOf(story.volumes.list())).to.deep.equal(['web unmounting'])
        story.states.skip()
        const plugin = story.keep(await scriptedPlugin({ socketPath }))
        await story.states.until((all) => all.length === 0)
        expect(volumeCalls(plugin)).to.deep.equal(['NodeUnpublishVolume', 'NodeUnstageVolume'])
      },
      (plugin) => plugin.close(),
    ))
})

describe('a plugin that is missing', () => {
  // kubernetes/kubernetes#112969, #120268
  it(
    'exactly when a volume is mounted is waited for: the mount goes on with its next run',
    aVolumeStory(async ({ volumes, health, states, spawn, exited }) => {
      const task = diskTask('node')
      const first = await spawn(task, { replies: { NodeStageVolume: [{ fault: { exit: 1 } }] } })
      await health.until(isHealthy)
      const mounted = volumes.mount(use)
      await first.waitForCall('NodeStageVolume')
      await first.exit
      exited(task, true)
      await health.until(because('task-exited'))
      await states.until((all) => phasesOf(all).includes('web mounting'))
      const second = await spawn(task)
      await mounted
      expect(volumeCalls(second)).to.deep.equal(['NodeStageVolume', 'NodePublishVolume'])
      expect(requestsOf(second, 'NodeStageVolume')).to.deep.equal(requestsOf(first, 'NodeStageVolume'))
    }),
  )

  // hashicorp/nomad#7200, #12265, #16728; digitalocean/csi-digitalocean#86
  it(
    'for all the time that a mount may take is named by its error, and nothing is left of the mount',
    aVolumeStory(async ({ volumes, states, start }) => {
      const failure = await failureOf(volumes.mount(use, { timeoutMs: 100 }))
      expect(failure).to.include({ code: 'ERR_TIMEOUT', retryable: true })
      expect(failure.message).to.equal(
        'mounting volume "v1" of plugin "disk": not within 100 ms (waiting for its plugin, which is not registered)',
      )
      expect(states.all).to.deep.equal([[]])
      const plugin = await start(diskTask())
      await volumes.mount({ ...use, volumeId: 'v2' })
      expect(volumeCalls(plugin)).to.deep.equal(mounting)
    }),
  )
})

describe('a volume that is in use', () => {
  // hashicorp/nomad#20424
  it(
    'by one who is just mounting it is not unstaged by another who unmounts it',
    aVolumeStory(async (story) => {
      const { volumes } = story
      const { plugin, counted } = await startCounted(story, diskTask('node'), {})
      const a = await volumes.mount({ ...use, allocId: 'a' })
      await plugin.reply('NodePublishVolume', { delayMs: 100 })
      const b = volumes.mount({ ...use, allocId: 'b' })
      await plugin.waitForCall('NodePublishVolume', 2)
      await Promise.all([a.unmount(), b])
      expect(volumeCalls(plugin)).to.not.include('NodeUnstageVolume')
      expect(phasesOf(volumes.list())).to.deep.equal(['b mounted'])
      await (await b).unmount()
      expect(volumeCalls(plugin)).to.deep.equal([
        'NodeStageVolume',
        'NodePublishVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
      ])
      expect(counted.mostAtOnce).to.equal(1)
    }),
  )

  // kubernetes/kubernetes#94108, #85476
  it(
    'is neither deleted nor detached, and goes in order once it is not',
    aVolumeStory(async ({ volumes, start }) => {
      const plugin = await start(diskTask())
      const of = { plugin: 'disk', volumeId: 'v1' }
      const mounted = await volumes.mount(use)
      for (const taking of [volumes.delete(of), volumes.detach({ ...of, nodeId: 'node-1' })]) {
        const failure = await failureOf(taking)
        expect(failure).to.include({ code: 'ERR_VOLUME_BUSY', retryable: true })
        expect(failure.message).to.match(/"v1".*held here for web/)
      }
      await mounted.unmount()
      await volumes.delete(of)
      expect(volumeCalls(plugin)).to.deep.equal([...mounting, ...unmounting, 'DeleteVolume'])
    }),
  )
})

// hetznercloud/csi-driver#240
describe('a node that has no room for another volume', () => {
  it(
    'is asked for its limit at once: it is another than it was read to be',
    aVolumeStory(async ({ host, volumes, start }) => {
      const full = { status: 'RESOURCE_EXHAUSTED', message: 'max volumes reached' } as const
      const plugin = await start(diskTask('node'), {
        maxVolumes: 8,
        replies: { NodePublishVolume: [full, full, full, full] },
      })
      const limitIs = (limit: number) =>
        firstValueFrom(host.fingerprint$.pipe(filter(({ node }) => node?.maxVolumes === limit)))
      await limitIs(8)
      await plugin.change({ maxVolumes: 3 })
      const read = limitIs(3)
      const failure = await failureOf(volumes.mount(use))
      expect(failure.details).to.include({ grpcCode: 'RESOURCE_EXHAUSTED', attempts: 4 })
      expect(await read).to.include({ healthy: true })
      expect(volumes.list()).to.deep.equal([])
    }),
  )
})
