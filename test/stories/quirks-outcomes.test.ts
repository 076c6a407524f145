import { expect } from 'chai'
import { outcomeOf } from '../../lib/csi/status.js'
import { needs } from '../support/needs.js'
import {
  aVolumeStory,
  block,
  diskTask,
  failureOf,
  mounting,
  requestsOf,
  unmounting,
  use,
  volumeCalls,
} from './quirks-support.js'
import { phasesOf } from './volumes-support.js'

const notFound = { status: 'NOT_FOUND', message: 'no such volume' } as const
const publishes = ['PUBLISH_UNPUBLISH_VOLUME', 'CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT']

describe('a driver that knows nothing of a volume any more', () => {
  it(
    'has unpublished and unstaged it',
    aVolumeStory(async ({ volumes, events, start }) => {
      const plugin = await start(diskTask(), {
        replies: { NodeUnpublishVolume: [notFound], NodeUnstageVolume: [notFound] },
      })
      await (await volumes.mount(use)).unmount()
      expect(volumeCalls(plugin)).to.deep.equal([...mounting, ...unmounting])
      expect(volumes.list()).to.deep.equal([])
      expect(events.all.map(({ kind }) => kind)).to.deep.equal(['mounted', 'unmounted'])
    }),
  )

  it(
    'has deleted it, and its snapshots',
    aVolumeStory(async ({ volumes, events, start }) => {
      const plugin = await start(diskTask(), {
        capabilities: { controller: publishes },
        replies: { DeleteVolume: [notFound], DeleteSnapshot: [notFound] },
      })
      await volumes.delete({ plugin: 'disk', volumeId: 'v1' })
      await volumes.deleteSnapshot({ plugin: 'disk', snapshotId: 's1' })
      expect(events.all.map(({ kind }) => kind)).to.deep.equal(['done', 'done'])
      expect(requestsOf(plugin, 'DeleteVolume')).to.have.length(1)
    }),
  )

  it(
    'has detached it only once its list says so, however often it is asked',
    aVolumeStory(async ({ volumes, states, start }) => {
      const listed = (...nodes: string[]) => ({
        response: {
          entries: [
            { volume: { volume_id: 'v0' }, status: { published_node_ids: ['node-1'] } },
            { volume: { volume_id: 'v1' }, status: { published_node_ids: nodes } },
          ],
        },
      })
      const plugin = await start(diskTask(), {
        capabilities: { controller: [...publishes, 'LIST_VOLUMES', 'LIST_VOLUMES_PUBLISHED_NODES'] },
        replies: {
          ControllerUnpublishVolume: [{ ...notFound, repeat: true }],
          ListVolumes: [listed('node-1'), listed('')],
        },
      })
      const mounted = await volumes.mount(use)
      const failure = await failureOf(mounted.unmount())
      expect(failure.details).to.include({ rpc: 'ControllerUnpublishVolume', grpcCode: 'NOT_FOUND' })
      expect(volumes.list()[0]?.problem).to.match(/^ControllerUnpublishVolume failed: NOT_FOUND/)
      states.skip()
      await states.until((all) => all.length === 0)
      expect(requestsOf(plugin, 'ListVolumes')).to.have.length(2)
    }),
  )

  it(
    'has not detached it where nothing says so: that is kept in mind, and asked again until it is done',
    aVolumeStory(async ({ volumes, states, start }) => {
      const plugin = await start(diskTask(), { replies: { ControllerUnpublishVolume: [notFound] } })
      const mounted = await volumes.mount(use)
      await failureOf(mounted.unmount())
      expect(volumes.list()).to.have.length(1)
      states.skip()
      await states.until((all) => all.length === 0)
      expect(requestsOf(plugin, 'ControllerUnpublishVolume')).to.have.length(2)
      expect(requestsOf(plugin, 'NodeUnpublishVolume')).to.have.length(1)
    }),
  )
})

describe('a driver that says OK, and has done nothing', () => {
  it('is found out where the mount table would have it', async function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    await aVolumeStory(async ({ volumes, start }) => {
      const plugin = await start(diskTask('node'))
      const failure = await failureOf(volumes.mount({ plugin: 'disk', volumeId: 'v1', allocId: 'web' }))
      expect(failure.code).to.equal('ERR_MOUNT')
      expect(failure.message).to.match(/^the plugin answered OK, and nothing is mounted at /)
      expect(volumeCalls(plugin)).to.deep.equal([
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
      ])
      expect(volumes.list()).to.deep.equal([])
    })()
  })
})

describe('a driver that leaves it open what became of a call', () => {
  for (const [what, reply] of [
    ['DEADLINE_EXCEEDED', { status: 'DEADLINE_EXCEEDED' }],
    ['UNAVAILABLE', { status: 'UNAVAILABLE' }],
    ['a connection that is lost', { fault: 'disconnect' }],
  ] as const)
    for (const rpc of [...mounting, ...unmounting])
      it(
        `is asked the same again: ${what} for ${rpc}`,
        aVolumeStory(async ({ volumes, events, start }) => {
          const plugin = await start(diskTask(), { replies: { [rpc]: [reply] } })
          await (await volumes.mount(use)).unmount()
          const twice = requestsOf(plugin, rpc)
          expect(twice).to.have.length(2)
          expect(twice[1]).to.deep.equal(twice[0])
          expect(events.all.map(({ kind }) => kind)).to.deep.equal(['mounted', 'unmounted'])
          expect(volumes.list()).to.deep.equal([])
        }),
      )

  for (const rpc of mounting)
    it(
      `is told to undo it where it was given up: CANCELLED for ${rpc}`,
      aVolumeStory(async ({ volumes, start }) => {
        const plugin = await start(diskTask(), { replies: { [rpc]: [{ status: 'CANCELLED' }] } })
        const failure = await failureOf(volumes.mount(use))
        expect(failure.details).to.include({ rpc, grpcCode: 'CANCELLED' })
        expect(outcomeOf(failure)).to.equal('unknown')
        const begun = mounting.slice(0, mounting.indexOf(rpc) + 1)
        expect(volumeCalls(plugin).slice(0, begun.length)).to.deep.equal(begun)
        const undone: readonly string[] = volumeCalls(plugin).slice(begun.length)
        const inverse = unmounting.slice(unmounting.length - begun.length)
        expect(undone).to.include.members([...inverse])
        expect(volumes.list()).to.deep.equal([])
      }),
    )

  it(
    'is asked again for what it was to make, until that is known',
    aVolumeStory(async ({ volumes, events, start }) => {
      const plugin = await start(diskTask(), { replies: { CreateVolume: [{ status: 'CANCELLED' }] } })
      const failure = await failureOf(
        volumes.create({ plugin: 'disk', name: 'data', volumeCapabilities: [block], parameters: { kind: 'fast' } }),
      )
      expect(outcomeOf(failure)).to.equal('unknown')
      await events.until(({ kind, volumeId }) => kind === 'done' && volumeId === 'data')
      const [first, second, ...more] = requestsOf(plugin, 'CreateVolume')
      expect(second).to.deep.equal(first)
      expect(more).to.deep.equal([])
    }),
  )

  it(
    'is told to undo it once it can be: what cannot be undone at once is kept in mind',
    aVolumeStory(async ({ volumes, states, start }) => {
      await start(diskTask('node'), {
        replies: { NodePublishVolume: [{ status: 'CANCELLED' }], NodeUnpublishVolume: [{ status: 'INTERNAL' }] },
      })
      await failureOf(volumes.mount(use))
      expect(phasesOf(volumes.list())).to.deep.equal(['web unmounting'])
      states.skip()
      await states.until((all) => all.length === 0)
    }),
  )
})
