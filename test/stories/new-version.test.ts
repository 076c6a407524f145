import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { aStory, because, isHealthy, ofAlloc, pluginTask, shortTiming, type Story } from './support.js'

describe('a new version beside an old one', () => {
  const old = pluginTask({ allocId: 'old' })
  const task = pluginTask({ allocId: 'new' })
  const current = ({ host }: Pick<Story, 'host'>): string | undefined => host.registry.list('csi-node')[0]?.allocId
  /** Which of the two a call goes to. */
  const answering = async ({ host }: Pick<Story, 'host'>): Promise<string> =>
    (await host.client<CsiClient>('csi-node', 'ebs').nodeGetInfo()).nodeId

  async function startOld({ start, health }: Story): Promise<void> {
    await start(old, { version: '1.0.0', nodeId: 'old' })
    await health.until(isHealthy)
  }

  it(
    'becomes current when it is ready, not before, and calls follow it',
    aStory({ timing: shortTiming }, async (story) => {
      const { start, health, registry, notes, tell } = story
      await startOld(story)
      const plugin = await start(task, { version: '2.0.0', nodeId: 'new', ready: false })
      await plugin.waitForCall('Probe', 3)
      expect(current(story)).to.equal('old')
      expect(await answering(story)).to.equal('old')

      registry.skip()
      await plugin.change({ ready: true })
      const event = await registry.until(ofAlloc('new'))
      expect(event).to.deep.include({ kind: 'registered', current: event.plugin })
      expect(event.plugin.version).to.equal('2.0.0')
      await health.until((one) => ofAlloc('new')(one) && isHealthy(one))
      expect(await answering(story)).to.equal('new')
      await notes.until((note) => note.task.allocId === 'new' && note.kind === 'plugin-healthy')

      // One that is current and not well is passed over for a call.
      await plugin.change({ ready: false })
      await health.until((one) => ofAlloc('new')(one) && because('not-ready')(one))
      expect(current(story)).to.equal('new')
      expect(await answering(story)).to.equal('old')

      // Stopped again, it leaves the older one current in the same event.
      registry.skip()
      tell('stopping', task)
      const gone = await registry.until(ofAlloc('new'))
      expect(gone.kind).to.equal('deregistered')
      expect(gone.current?.allocId).to.equal('old')
      expect(current(story)).to.equal('old')
      expect(await answering(story)).to.equal('old')
    }),
  )

  it(
    'stays current when the old one stops',
    aStory({}, async (story) => {
      await startOld(story)
      await story.start(task, { nodeId: 'new' })
      await story.health.until((one) => ofAlloc('new')(one) && isHealthy(one))
      story.registry.skip()
      story.tell('stopping', old)
      const gone = await story.registry.until(ofAlloc('old'))
      expect(gone.current?.allocId).to.equal('new')
      expect(current(story)).to.equal('new')
      expect(await answering(story)).to.equal('new')
    }),
  )

  it(
    'that never gets ready leaves the old one in place',
    aStory({}, async (story) => {
      const impatient = pluginTask({
        allocId: 'new',
        csiPlugin: { id: 'ebs', type: 'node', healthTimeoutMs: 100, initTimeoutMs: 100 },
      })
      await startOld(story)
      await story.start(impatient, { ready: false })
      const request = await story.restarts.until(({ task: { allocId } }) => allocId === 'new')
      expect(request.reason).to.equal('not-ready')
      story.tell('stopping', impatient)
      story.tell('stopped', impatient)
      expect(current(story)).to.equal('old')
      expect(await answering(story)).to.equal('old')
      expect(story.registry.all).to.have.length(1)
      expect(story.health.all).to.have.length(1)
    }),
  )
})
