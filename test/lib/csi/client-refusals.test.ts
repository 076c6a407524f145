import { expect } from 'chai'
import { csiClient, type CsiClient } from '../../../lib/csi/client.js'
import { all, caught, mount, show, staged, volume, type AnyClient } from './client-support.js'

describe('the CSI client', () => {
  describe('refuses', () => {
    const refusing = csiClient({
      pick: () => {
        throw new Error('a channel was picked')
      },
    }) as unknown as AnyClient
    const bad: [method: string, request: unknown, field: string, options?: object][] = [
      ['createVolume', undefined, 'name'],
      ['createVolume', null, 'request'],
      ['createVolume', [], 'request'],
      ['createVolume', { ...volume, name: '' }, 'name'],
      ['createVolume', { ...volume, name: 7 }, 'name'],
      ['createVolume', { name: 'v' }, 'volumeCapabilities'],
      ['createVolume', { name: 'v', volumeCapabilities: [] }, 'volumeCapabilities'],
      ['createVolume', { name: 'v', volumeCapabilities: [undefined] }, 'volumeCapabilities[0]'],
      ['createVolume', { name: 'v', volumeCapabilities: [{}] }, 'volumeCapabilities[0].accessMode'],
      ['createVolume', { name: 'v', volumeCapabilities: [{ ...mount, kind: 'disk' }] }, 'volumeCapabilities[0].kind'],
      [
        'createVolume',
        { name: 'v', volumeCapabilities: [{ ...mount, kind: 'block', fsType: 'ext4' }] },
        'volumeCapabilities[0].fsType',
      ],
      [
        'createVolume',
        { name: 'v', volumeCapabilities: [{ ...mount, accessMode: 'UNKNOWN' }] },
        'volumeCapabilities[0].accessMode',
      ],
      [
        'createVolume',
        { name: 'v', volumeCapabilities: [{ ...mount, mountFlags: 'ro' }] },
        'volumeCapabilities[0].mountFlags',
      ],
      ['createVolume', { ...volume, capacityRange: {} }, 'capacityRange'],
      ['createVolume', { ...volume, capacityRange: { requiredBytes: 0n } }, 'capacityRange'],
      [
        'createVolume',
        { ...volume, capacityRange: { requiredBytes: 10n, limitBytes: 9n } },
        'capacityRange.limitBytes',
      ],
      ['createVolume', { ...volume, capacityRange: { requiredBytes: -1n } }, 'capacityRange.requiredBytes'],
      ['createVolume', { ...volume, capacityRange: { requiredBytes: 2n ** 63n } }, 'capacityRange.requiredBytes'],
      ['createVolume', { ...volume, capacityRange: { requiredBytes: 1024 } }, 'capacityRange.requiredBytes'],
      ['createVolume', { ...volume, volumeContentSource: { kind: 'copy' } }, 'volumeContentSource.kind'],
      ['createVolume', { ...volume, volumeContentSource: { kind: 'volume' } }, 'volumeContentSource.volumeId'],
      ['createVolume', { ...volume, parameters: { a: 1 } }, 'parameters.a'],
      [
        'createVolume',
        { ...volume, accessibilityRequirements: { requisite: [5] } },
        'accessibilityRequirements.requisite[0]',
      ],
      ['deleteVolume', { volumeId: '' }, 'volumeId'],
      ['deleteVolume', { volume_id: 'v' }, 'volume_id'],
      ['controllerPublishVolume', { volumeId: 'v', volumeCapability: mount }, 'nodeId'],
      ['controllerPublishVolume', { volumeId: 'v', nodeId: 'n', volumeCapability: mount, readonly: 'no' }, 'readonly'],
      ['controllerUnpublishVolume', { volumeId: 'v', nodeId: '' }, 'nodeId'],
      ['validateVolumeCapabilities', { volumeId: 'v' }, 'volumeCapabilities'],
      ['listVolumes', { maxEntries: -1 }, 'maxEntries'],
      ['listVolumes', { maxEntries: 2 ** 31 }, 'maxEntries'],
      ['listSnapshots', { startingToken: 5 }, 'startingToken'],
      ['controllerExpandVolume', { volumeId: 'v' }, 'capacityRange'],
      ['controllerModifyVolume', { volumeId: 'v', mutableParameters: {} }, 'mutableParameters'],
      ['createSnapshot', { name: 's' }, 'sourceVolumeId'],
      ['createVolumeGroupSnapshot', { name: 'g', sourceVolumeIds: [''] }, 'sourceVolumeIds[0]'],
      ['deleteVolumeGroupSnapshot', { groupSnapshotId: 'g' }, 'snapshotIds'],
      ['nodeStageVolume', { ...staged, stagingTargetPath: 'here' }, 'stagingTargetPath'],
      ['nodeStageVolume', { ...staged, stagingTargetPath: '/a\0b' }, 'stagingTargetPath'],
      ['nodeStageVolume', { ...staged, volumeCapability: undefined }, 'volumeCapability'],
      ['nodePublishVolume', { volumeId: 'v', volumeCapability: mount }, 'targetPath'],
      ['nodeUnpublishVolume', { volumeId: 'v' }, 'targetPath'],
      ['nodeGetVolumeStats', { volumeId: 'v' }, 'volumePath'],
      ['nodeGetInfo', { volumeId: 'v' }, 'volumeId'],
      ['nodeGetInfo', {}, 'timeoutMs', { timeoutMs: NaN }],
      ['nodeGetInfo', {}, 'signal', { signal: {} }],
      ['nodeGetInfo', {}, 'force', { force: 1 }],
    ]
    for (const [method, request, field, options] of bad) {
      it(`${method} for its ${field}: ${show(request)}`, async () => {
        const failure = await caught(refusing[method]!(request, options))
        expect(failure.code).to.equal('ERR_OPTION_INVALID')
        expect(failure.message).to.contain(field)
        expect(failure.details).to.deep.equal({ field })
      })
    }

    it('a stream likewise, when its first message is asked for', async () => {
      const failure = await caught(
        all((refusing as unknown as CsiClient).getMetadataDelta({ baseSnapshotId: 'a' } as never)),
      )
      expect(failure.details).to.deep.equal({ field: 'targetSnapshotId' })
    })

    it('without showing a secret, or a mount flag', async () => {
      for (const request of [
        { ...staged, secrets: { password: ['hunter2'] } },
        { ...staged, secrets: 'hunter2' },
        { ...staged, password: 'hunter2' },
        { ...staged, volumeCapability: { ...mount, mountFlags: [{ password: 'hunter2' }] } },
        { ...staged, volumeCapability: { ...mount, mountFlags: 'password=hunter2' } },
        { ...staged, volumeCapability: 'hunter2' },
      ]) {
        const { message, details, cause } = await caught(refusing['nodeStageVolume']!(request))
        expect(`${message} ${JSON.stringify(details)} ${String(cause)}`).to.not.contain('hunter2')
      }
    })
  })
})
