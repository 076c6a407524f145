import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import type { VolumeCapability } from '../../lib/csi/messages/volume-capability.js'
import { PlugstreamError } from '../../lib/errors.js'
import { needs } from '../support/needs.js'
import { aGoStory, type GoStory } from './go-story.js'
import { mountsBelow } from './mounts.js'
import { needsTools } from './tools.js'

const gib = 2n ** 30n
const mount: VolumeCapability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (failure: unknown) => failure,
  )

async function clients({ host }: GoStory): Promise<{ controller: CsiClient; node: CsiClient }> {
  await host.waitFor('csi-controller', 'hostpath', { healthy: true })
  await host.waitFor('csi-node', 'hostpath', { healthy: true })
  return { controller: host.client('csi-controller', 'hostpath'), node: host.client('csi-node', 'hostpath') }
}

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of all) found.push(one)
  return found
}

describe('calls to a driver in Go', () => {
  before(async function () {
    await needsTools(this)
  })

  it(
    'make, find, snapshot, grow and delete a volume',
    aGoStory(async (story) => {
      await story.run()
      const { controller } = await clients(story)
      const request = { name: 'data', volumeCapabilities: [mount], capacityRange: { requiredBytes: gib } }
      const { volume } = await controller.createVolume(request)
      const { volumeId } = volume
      expect(volume).to.deep.include({ capacityBytes: gib, volumeContext: { name: 'data' } })
      expect(volume.accessibleTopology).to.deep.equal([{ 'io.kubernetes.storage.mock/node': 'some-mock-node' }])
      expect(await controller.createVolume(request)).to.deep.equal({ volume })
      const larger = { ...request, capacityRange: { requiredBytes: 2n * gib } }
      expect(await failureOf(controller.createVolume(larger)))
        .to.be.instanceOf(PlugstreamError)
        .and.deep.include({
          code: 'ERR_CSI_RPC',
          retryable: false,
        })

      const found = await controller.controllerGetVolume({ volumeId })
      expect(found.volume).to.deep.equal(volume)
      const pages = await collect(controller.allVolumes({ maxEntries: 1 }))
      expect(pages.map((one) => one.volume.volumeId))
        .to.include(volumeId)
        .and.to.have.length(4)
      const { confirmed } = await controller.validateVolumeCapabilities({ volumeId, volumeCapabilities: [mount] })
      expect(confirmed?.volumeCapabilities).to.have.length(1)
      expect((await controller.getCapacity()).availableBytes).to.equal(2n ** 40n)

      const before = Date.now()
      const { snapshot } = await controller.createSnapshot({ sourceVolumeId: volumeId, name: 'first' })
      expect(snapshot).to.include({ sourceVolumeId: volumeId, readyToUse: true })
      expect(snapshot.createdAt).to.be.within(before - 1, Date.now() + 1)
      const listed = await collect(controller.allSnapshots({ sourceVolumeId: volumeId }))
      expect(listed).to.deep.equal([{ snapshot }])
      await controller.deleteSnapshot({ snapshotId: snapshot.snapshotId })
      expect(await collect(controller.allSnapshots({ sourceVolumeId: volumeId }))).to.deep.equal([])

      const grown = await controller.controllerExpandVolume({
        volumeId,
        capacityRange: { requiredBytes: 3n * gib },
        volumeCapability: mount,
      })
      expect(grown).to.deep.equal({ capacityBytes: 3n * gib, nodeExpansionRequired: true })
      for (let again = 0; again < 2; again++) await controller.deleteVolume({ volumeId })
      expect(await failureOf(controller.controllerGetVolume({ volumeId }))).to.have.nested.property(
        'details.grpcCode',
        'NOT_FOUND',
      )
    }),
  )

  it(
    'are refused before they are sent where it does not offer them',
    aGoStory(async (story) => {
      await story.run()
      const { controller } = await clients(story)
      const detach = { volumeId: '1', nodeId: 'hostpath.csi.example' }
      expect(await failureOf(controller.controllerUnpublishVolume(detach))).to.include({ code: 'ERR_CSI_UNSUPPORTED' })
      const forced = await failureOf(controller.controllerUnpublishVolume(detach, { force: true }))
      expect(forced).to.have.nested.property('details.grpcCode', 'UNIMPLEMENTED')
    }),
  )

  it(
    'fail with a reason where it offers what it does not have',
    aGoStory(async (story) => {
      await story.run()
      const { controller } = await clients(story)
      const capabilities = await controller.controllerGetCapabilities()
      expect(capabilities.names).to.include('GET_VOLUME_HEALTH')
      const failure = await failureOf(controller.controllerGetVolumeHealth({ volumeId: '1' }))
      expect(failure).to.deep.include({ code: 'ERR_CSI_RPC', retryable: false })
      expect(failure).to.have.nested.property('details.grpcCode', 'UNIMPLEMENTED')
    }),
  )

  it(
    'say with its code what it does not know',
    aGoStory(async (story) => {
      await story.run()
      const { node } = await clients(story)
      const targetPath = join(story.directory, 'target')
      const failure = await failureOf(node.nodeUnpublishVolume({ volumeId: 'nobody-knows', targetPath }))
      expect(failure).to.be.instanceOf(PlugstreamError)
      expect(failure).to.deep.include({ code: 'ERR_CSI_RPC', retryable: false })
      expect(failure).to.have.property('details').that.includes({
        rpc: 'NodeUnpublishVolume',
        grpcCode: 'NOT_FOUND',
        outcome: 'final',
      })
    }),
  )

  it('mount a volume and take it away again, over the death of the driver', async function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    await aGoStory(async (story) => {
      const { directory } = story
      const task = await story.run({ attach: true })
      const { controller, node } = await clients(story)
      const { volumeId } = (await controller.createVolume({ name: 'data', volumeCapabilities: [mount] })).volume
      const [staging, target, other] = ['staging', 'target', 'read-only'].map((name) => join(directory, name)) as [
        string,
        string,
        string,
      ]
      mkdirSync(staging)
      const nodeId = (await node.nodeGetInfo()).nodeId
      const attached = await controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: mount })
      expect(attached.publishContext).to.include({ device: '/dev/mock' })
      const use = { volumeId, stagingTargetPath: staging, volumeCapability: mount, ...attached }
      await node.nodeStageVolume(use)
      await node.nodePublishVolume({ ...use, targetPath: target })
      writeFileSync(join(target, 'file'), 'kept')
      expect(mountsBelow(directory)).to.deep.equal([{ path: target, readonly: false }])
      expect((await node.nodeGetVolumeStats({ volumeId, volumePath: target })).usage).to.deep.include({
        unit: 'BYTES',
        total: 100n * gib,
        available: 0n,
        used: 0n,
      })

      process.kill(await story.pidOf(task), 'SIGKILL')
      await story.health.until(({ healthy, reason }) => !healthy && reason === 'task-exited')
      await clients(story)
      expect(readFileSync(join(target, 'file'), 'utf8')).to.equal('kept')
      await node.nodeStageVolume(use)
      await node.nodePublishVolume({ ...use, targetPath: target })
      await node.nodePublishVolume({ ...use, targetPath: other, readonly: true })
      expect(mountsBelow(directory)).to.deep.equal([
        { path: target, readonly: false },
        { path: other, readonly: true },
      ])
      expect(readFileSync(join(other, 'file'), 'utf8')).to.equal('kept')
      expect(() => writeFileSync(join(other, 'file'), 'changed')).to.throw('EROFS')

      for (const targetPath of [target, other]) {
        for (let again = 0; again < 2; again++) await node.nodeUnpublishVolume({ volumeId, targetPath })
      }
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath: staging })
      await controller.controllerUnpublishVolume({ volumeId, nodeId })
      expect(mountsBelow(directory)).to.deep.equal([])
      expect(readdirSync(directory)).to.have.members(['drivers', 'host', 'staging'])
      await controller.deleteVolume({ volumeId })
      expect(readdirSync(join(directory, 'drivers', 'a1', 'volumes'))).to.deep.equal([])
    })()
  })
})
