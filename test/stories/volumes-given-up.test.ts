import { join } from 'node:path'
import { expect } from 'chai'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { inDirectory } from './support.js'
import { failureOf, withVolumes, type VolumeStory } from './volumes-support.js'

const use = { plugin: 'disk', volumeId: 'v', allocId: 'a' }

/** A plugin that hangs while it stages. */
function aHangingStory(tell: (story: VolumeStory, staging: () => Promise<unknown>) => Promise<void>) {
  return (): Promise<void> =>
    inDirectory((directory) =>
      withVolumes(join(directory, 'host'), {}, async (story) => {
        const socketPath = join(directory, 'csi.sock')
        const script = { replies: { NodeStageVolume: [{ fault: 'hang' }] } } as const
        const plugin = story.keep(await scriptedPlugin({ socketPath, script }))
        await story.host.registry.register({
          type: 'csi-node',
          name: 'disk',
          allocId: 'd1',
          connection: { socketPath },
        })
        await tell(story, () => plugin.waitForCall('NodeStageVolume'))
      }),
    )
}

describe('work with a volume for which there is no more time', () => {
  it(
    'says so, as its events do, where the time is that of a signal',
    aHangingStory(async ({ volumes, events }, staging) => {
      const stop = new AbortController()
      const failing = failureOf(volumes.mount(use, { signal: stop.signal }))
      await staging()
      const reason = new DOMException('', 'TimeoutError')
      stop.abort(reason)
      const failure = await failing
      expect(failure).to.include({ code: 'ERR_TIMEOUT', cause: reason })
      expect(failure.message).to.equal('mounting volume "v" of plugin "disk": timed out (NodeStageVolume)')
      const { message } = await events.until(({ kind }) => kind === 'failed')
      expect(message).to.equal('NodeStageVolume: timed out')
    }),
  )

  it(
    'is aborted where a caller gives up, and so say its events',
    aHangingStory(async ({ volumes, events }, staging) => {
      const stop = new AbortController()
      const failing = failureOf(volumes.mount(use, { signal: stop.signal }))
      await staging()
      stop.abort()
      expect((await failing).code).to.equal('ERR_ABORTED')
      const { message } = await events.until(({ kind }) => kind === 'failed')
      expect(message).to.equal('NodeStageVolume: aborted')
    }),
  )

  it(
    'leaves a state that is told once: what came of it is what was before',
    aHangingStory(async ({ volumes, states }, staging) => {
      const stop = new AbortController()
      const failing = failureOf(volumes.mount(use, { signal: stop.signal }))
      await staging()
      await states.until((state) => state.length === 1)
      stop.abort()
      await failing
      await volumes.unmount(use)
      await states.until((state) => state.length === 0)
      const told = states.all.map((state) => JSON.stringify(state))
      expect(told.filter((state, at) => state === told[at - 1])).to.deep.equal([])
    }),
  )

  it('says so where a plugin is waited for', () =>
    inDirectory((directory) =>
      withVolumes(directory, {}, async ({ host, volumes }) => {
        const late = { signal: AbortSignal.abort(new DOMException('', 'TimeoutError')) }
        const waits = [
          host.waitFor('csi-node', 'disk', late),
          host.waitFor('csi-node', 'disk', { ...late, healthy: true }),
          volumes.unmount(use, late),
          volumes.delete({ plugin: 'disk', volumeId: 'v' }, late),
        ]
        for (const wait of waits) expect((await failureOf(wait)).code).to.equal('ERR_TIMEOUT')
      }),
    ))
})
