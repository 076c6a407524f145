import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { outcomeOf } from '../../lib/csi/status.js'
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
import { because, isHealthy, ofAlloc, ofType, reasonsOf } from './support.js'

const data = { plugin: 'disk', name: 'data', volumeCapabilities: [block] } as const

describe('what a driver claims to serve', () => {
  it(
    'of a controller on the socket of a node is not asked for there',
    aVolumeStory(async ({ volumes, fingerprints, start }) => {
      const plugin = await start(diskTask('node'), { capabilities: { plugin: ['CONTROLLER_SERVICE'] } })
      expect(await fingerprints.until(isHealthy)).to.include({ requiresControllerPlugin: true })
      await (await volumes.mount(use)).unmount()
      expect(volumeCalls(plugin)).to.deep.equal([
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
      ])
      expect(plugin.calls.map(({ rpc }) => rpc)).to.not.include('ControllerGetCapabilities')
    }),
  )

  it(
    'of a controller and does not claim is used all the same',
    aVolumeStory(async ({ volumes, fingerprints, start }) => {
      const plugin = await start(diskTask(), { capabilities: { plugin: [] } })
      const controller = await fingerprints.until((one) => ofType('csi-controller')(one) && isHealthy(one))
      expect(controller.controller?.names).to.include('CREATE_DELETE_VOLUME')
      await volumes.create(data)
      await (await volumes.mount(use)).unmount()
      expect(volumeCalls(plugin)).to.deep.equal([...mounting, ...unmounting])
    }),
  )

  // hashicorp/nomad#10030, kubernetes-sigs/azuredisk-csi-driver#734
  it(
    'of a controller and does not have is told of that role alone: its node is well, and mounts without it',
    aVolumeStory(async ({ volumes, fingerprints, start }) => {
      const plugin = await start(diskTask(), { services: ['node'], capabilities: { plugin: ['CONTROLLER_SERVICE'] } })
      const controller = await fingerprints.until(ofType('csi-controller'))
      expect(controller).to.deep.include({ healthy: false })
      expect(controller.healthDescription).to.match(/^ControllerGetCapabilities failed: UNIMPLEMENTED/)
      await fingerprints.until((one) => ofType('csi-node')(one) && isHealthy(one))
      await volumes.mount(use)
      expect(volumeCalls(plugin)).to.deep.equal(['NodeStageVolume', 'NodePublishVolume'])
      const failure = await failureOf(volumes.create(data))
      expect(failure.code).to.equal('ERR_CSI_UNSUPPORTED')
    }),
  )

  it(
    'of groups and of what nobody knows, and does not have, is refused when it is asked for, and disturbs nothing else',
    aVolumeStory(async ({ volumes, health, fingerprints, start }) => {
      const claims = ['CONTROLLER_SERVICE', 'GROUP_CONTROLLER_SERVICE', 'SNAPSHOT_METADATA_SERVICE', 77]
      await start(diskTask(), { capabilities: { plugin: claims } })
      await fingerprints.until((one) => ofType('csi-controller')(one) && isHealthy(one))
      const group = { plugin: 'disk', name: 'then', sourceVolumeIds: ['v1'] }
      expect((await failureOf(volumes.snapshotGroup(group))).code).to.equal('ERR_CSI_UNSUPPORTED')
      await volumes.create(data)
      expect(new Set(reasonsOf(health.all))).to.deep.equal(new Set(['ready']))
    }),
  )

  it(
    'of its controller may be in another process than what it has of its node, under one name',
    aVolumeStory(async ({ volumes, health, start }) => {
      const controller = await start(diskTask('controller', 'c'), { services: ['controller'] })
      const node = await start(diskTask('node', 'n'), { services: ['node'], nodeId: 'node-7' })
      await health.untilAll((all) => (all.filter(isHealthy).length === 2 ? true : undefined))
      await volumes.create(data)
      await (await volumes.mount(use)).unmount()
      expect(volumeCalls(controller)).to.deep.equal(['ControllerPublishVolume', 'ControllerUnpublishVolume'])
      expect(requestsOf(controller, 'ControllerPublishVolume')[0]).to.include({ node_id: 'node-7' })
      expect(volumeCalls(node)).to.deep.equal([
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
      ])
    }),
  )

  // hashicorp/nomad#8034
  it(
    'of a controller that is not well is served by one that is',
    aVolumeStory(async ({ volumes, health, fingerprints, start }) => {
      const well = await start(diskTask('monolith', 'well'))
      await fingerprints.until((one) => ofType('csi-controller')(one) && isHealthy(one))
      const sick = await start(diskTask('controller', 'sick'))
      await health.until((event) => ofAlloc('sick')(event) && isHealthy(event))
      await sick.change({ ready: false, replies: {} })
      await sick.disconnect()
      await health.until((event) => ofAlloc('sick')(event) && because('not-ready')(event))
      await (await volumes.mount(use)).unmount()
      expect(volumeCalls(well)).to.deep.equal([...mounting, ...unmounting])
      expect(volumeCalls(sick)).to.deep.equal([])
    }),
  )

  // kubernetes-csi/external-attacher#123
  it(
    'is what it says since its last start: nothing is kept of what it could do before',
    aVolumeStory(async ({ volumes, health, fingerprints, start }) => {
      const plugin = await start(diskTask('node'), { version: '1.0.0', capabilities: { node: [] } })
      await fingerprints.until(isHealthy)
      const mounted = await volumes.mount(use)
      expect((await failureOf(volumes.stats(use))).code).to.equal('ERR_CSI_UNSUPPORTED')
      await mounted.unmount()

      health.skip()
      fingerprints.skip()
      await plugin.rebind({ version: '2.0.0', capabilities: { node: ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'] } })
      await fingerprints.until(({ healthy, plugin: { version } }) => healthy && version === '2.0.0')
      await volumes.mount(use)
      await plugin.reply('NodeGetVolumeStats', { response: { usage: [{ unit: 'BYTES', total: '10' }] } })
      expect((await volumes.stats(use)).usage).to.have.length(1)
      expect(volumeCalls(plugin)).to.deep.equal([
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeGetVolumeStats',
      ])
    }),
  )
})

describe('a call that a driver does not advertise', () => {
  for (const status of ['UNIMPLEMENTED', 'INTERNAL', 'UNKNOWN'] as const)
    it(
      `is not sent; where it is forced to be, it is over with the first ${status}`,
      aVolumeStory(async ({ host, fingerprints, start }) => {
        const fails = { status, message: 'driver[method] is not a function', repeat: true } as const
        const plugin = await start(diskTask('controller'), { replies: { ControllerGetVolume: [fails] } })
        await fingerprints.until(isHealthy)
        const client = host.client<CsiClient>('csi-controller', 'disk')
        const refused = await failureOf(client.controllerGetVolume({ volumeId: 'v1' }))
        expect(refused.code).to.equal('ERR_CSI_UNSUPPORTED')
        expect(volumeCalls(plugin)).to.deep.equal([])
        const failure = await failureOf(client.controllerGetVolume({ volumeId: 'v1' }, { force: true }))
        expect(failure).to.deep.include({ code: 'ERR_CSI_RPC', retryable: false })
        expect(failure.details).to.deep.include({ grpcCode: status })
        expect(outcomeOf(failure)).to.equal('final')
        expect(volumeCalls(plugin)).to.deep.equal(['ControllerGetVolume'])
      }),
    )

  it(
    'and one that it advertises and does not have fails with that, and nothing of the mount is left',
    aVolumeStory(async ({ volumes, start }) => {
      const plugin = await start(diskTask('node'), { replies: { NodeStageVolume: [{ status: 'UNIMPLEMENTED' }] } })
      const failure = await failureOf(volumes.mount(use))
      expect(failure.details).to.include({ rpc: 'NodeStageVolume', grpcCode: 'UNIMPLEMENTED' })
      expect(volumeCalls(plugin).filter((rpc) => rpc === 'NodeStageVolume')).to.have.length(1)
      expect(volumes.list()).to.deep.equal([])
    }),
  )
})
