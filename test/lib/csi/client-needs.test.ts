import { expect } from 'chai'
import type { CapabilityList } from '../../../lib/csi/needs.js'
import type { AnyCsiRpc } from '../../../lib/csi/rpcs.js'
import type { PluginScript } from '../../testing/plugin-script.js'
import { caught, clientsOfPlugins, mount, show, staged, volume, type AnyClient } from './client-support.js'

type Advertised = NonNullable<PluginScript['capabilities']>

const block = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' } as const
const single = { ...mount, accessMode: 'SINGLE_NODE_SINGLE_WRITER' }
const many = { ...block, accessMode: 'SINGLE_NODE_MULTI_WRITER' }
const ofGroup = { ...mount, volumeMountGroup: '1000' }
const place = { zone: 'a' }
const attached = { volumeId: 'v', nodeId: 'n', volumeCapability: mount }
const published = { volumeId: 'v', targetPath: '/t', volumeCapability: mount }
const capacityRange = { requiredBytes: 1n }
const snapshot = { name: 's', sourceVolumeId: 'v' }

const advertised: Advertised = {
  plugin: [],
  controller: [
    'CREATE_DELETE_VOLUME',
    'PUBLISH_UNPUBLISH_VOLUME',
    'EXPAND_VOLUME',
    'GET_CAPACITY',
    'CREATE_DELETE_SNAPSHOT',
  ],
  node: ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'],
}
const also = (list: CapabilityList, name: string): Advertised => ({
  ...advertised,
  [list]: [...(advertised[list] ?? []), name],
})

/** Requests that may be made only where something more is advertised than the call itself. */
const conditional: [rpc: AnyCsiRpc, request: object, list: CapabilityList, name: string][] = [
  ['CreateVolume', { ...volume, volumeContentSource: { kind: 'volume', volumeId: 'o' } }, 'controller', 'CLONE_VOLUME'],
  ['CreateVolume', { ...volume, mutableParameters: { iops: '1' } }, 'controller', 'MODIFY_VOLUME'],
  [
    'CreateVolume',
    { ...volume, accessibilityRequirements: { requisite: [place] } },
    'plugin',
    'VOLUME_ACCESSIBILITY_CONSTRAINTS',
  ],
  ['CreateVolume', { ...volume, volumeCapabilities: [mount, single] }, 'controller', 'SINGLE_NODE_MULTI_WRITER'],
  ['CreateVolume', { ...volume, volumeCapabilities: [many] }, 'controller', 'SINGLE_NODE_MULTI_WRITER'],
  ['ControllerPublishVolume', { ...attached, readonly: true }, 'controller', 'PUBLISH_READONLY'],
  ['ControllerPublishVolume', { ...attached, volumeCapability: single }, 'controller', 'SINGLE_NODE_MULTI_WRITER'],
  ['GetCapacity', { accessibleTopology: place }, 'plugin', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
  ['GetCapacity', { volumeCapabilities: [many] }, 'controller', 'SINGLE_NODE_MULTI_WRITER'],
  [
    'ControllerExpandVolume',
    { volumeId: 'v', capacityRange, volumeCapability: many },
    'controller',
    'SINGLE_NODE_MULTI_WRITER',
  ],
  [
    'CreateSnapshot',
    { ...snapshot, accessibilityRequirements: { preferred: [place] } },
    'plugin',
    'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS',
  ],
  ['NodeStageVolume', { ...staged, volumeCapability: single }, 'node', 'SINGLE_NODE_MULTI_WRITER'],
  ['NodeStageVolume', { ...staged, volumeCapability: ofGroup }, 'node', 'VOLUME_MOUNT_GROUP'],
  ['NodePublishVolume', { ...published, volumeCapability: many }, 'node', 'SINGLE_NODE_MULTI_WRITER'],
  ['NodePublishVolume', { ...published, volumeCapability: ofGroup }, 'node', 'VOLUME_MOUNT_GROUP'],
  [
    'NodeExpandVolume',
    { volumeId: 'v', volumePath: '/t', volumeCapability: single },
    'node',
    'SINGLE_NODE_MULTI_WRITER',
  ],
  ['NodeExpandVolume', { volumeId: 'v', volumePath: '/t', volumeCapability: ofGroup }, 'node', 'VOLUME_MOUNT_GROUP'],
]

/** Requests that look like those, and may be made of any plugin that has the call. */
const unconditional: [rpc: AnyCsiRpc, request: object][] = [
  ['CreateVolume', { ...volume, volumeContentSource: { kind: 'snapshot', snapshotId: 's' }, mutableParameters: {} }],
  ['CreateVolume', { ...volume, volumeCapabilities: [ofGroup, block] }],
  ['ControllerPublishVolume', { ...attached, readonly: false, volumeCapability: ofGroup }],
  ['ValidateVolumeCapabilities', { volumeId: 'v', volumeCapabilities: [single, many, ofGroup] }],
  ['GetCapacity', {}],
  ['NodeStageVolume', { ...staged, volumeCapability: { ...mount, volumeMountGroup: '' } }],
  ['NodePublishVolume', { ...published, stagingTargetPath: '/s', readonly: true }],
]

describe('the CSI client', () => {
  const { connect } = clientsOfPlugins()

  async function connectAs(capabilities: Advertised) {
    const { client, asked } = await connect({ capabilities })
    const make = (rpc: AnyCsiRpc, request: object, options?: object): Promise<unknown> =>
      (client as unknown as AnyClient)[`${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`]!(request, options)
    return { make, asked }
  }
  /** The plugin need not answer well to what it was sent. */
  const anyhow = (call: Promise<unknown>): Promise<unknown> => call.catch(() => undefined)

  for (const [rpc, request, list, name] of conditional) {
    it(`sends ${rpc} ${show(request)} only with ${name} of the ${list}, unless it is forced to`, async () => {
      const without = await connectAs(advertised)
      const failure = await caught(without.make(rpc, request))
      expect(failure.code).to.equal('ERR_CSI_UNSUPPORTED')
      expect(failure.details).to.deep.equal({ rpc, capability: name })
      expect(failure.retryable).to.equal(false)
      expect(without.asked()).to.not.include(rpc)
      await anyhow(without.make(rpc, request, { force: true }))
      expect(without.asked()).to.include(rpc)

      const having = await connectAs(also(list, name))
      await anyhow(having.make(rpc, request))
      expect(having.asked()).to.include(rpc)
    })
  }

  for (const [rpc, request] of unconditional) {
    it(`sends ${rpc} ${show(request)} to any plugin that has it`, async () => {
      const { make, asked } = await connectAs(advertised)
      await anyhow(make(rpc, request))
      expect(asked()).to.include(rpc)
    })
  }
})
