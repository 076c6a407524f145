import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { CsiChannel } from '../../../lib/csi/channel.js'
import { csiKind } from '../../../lib/csi/kind.js'
import { csiProto } from '../../../lib/csi/proto.js'
import { serveCsi, type CsiServer } from '../../../lib/csi/server.js'
import type { CsiServices } from '../../../lib/csi/server-handlers.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { inDomain, rpcTypes, Samples } from './samples.js'

type AnyClient = Record<string, (request?: unknown, options?: object) => unknown>

const rpcs = rpcTypes()

describe('every call of CSI', () => {
  const { Identity, Controller, GroupController, SnapshotMetadata, Node } = csiProto()
  const definitions = Object.assign(
    {},
    ...[Identity, Controller, GroupController, SnapshotMetadata, Node].map((one) => one.service),
  ) as Record<string, { requestSerialize(m: object): Buffer; requestDeserialize(b: Buffer): object }>
  let directory: string
  let server: CsiServer
  let channel: CsiChannel
  let client: AnyClient
  /** What the server answers, and what it was asked. */
  let answer: object
  let asked: object

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ps-'))
    const socketPath = join(directory, 'csi.sock')
    const unary = (request: object) => ((asked = request), answer)
    const streaming = async function* (request: object) {
      asked = request
      yield answer
    }
    const served = ({ service }: { service: object }) =>
      Object.fromEntries(Object.keys(service).map((rpc) => [rpc, rpc.startsWith('GetMetadata') ? streaming : unary]))
    server = await serveCsi({
      socketPath,
      identity: served(Identity) as unknown as CsiServices['identity'],
      controller: served(Controller),
      groupController: served(GroupController),
      snapshotMetadata: served(SnapshotMetadata),
      node: served(Node),
    })
    channel = csiKind().open(socketPath)
    client = csiKind().client(() => channel) as unknown as AnyClient
  })
  after(async () => {
    await channel.close()
    await server.close()
    await rm(directory, { recursive: true })
  })

  async function made(rpc: string, request: unknown): Promise<unknown> {
    const result = client[`${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`]!(request, { force: true })
    if (!rpc.startsWith('GetMetadata')) return result
    const messages = []
    for await (const message of result as AsyncIterable<unknown>) messages.push(message)
    expect(messages).to.have.length(1)
    return messages[0]
  }

  it('is one of 36', () => {
    expect(rpcs).to.have.length(36)
  })

  for (const { rpc, request, response } of rpcs) {
    it(`${rpc} carries every field of its request and of its answer, exactly`, async () => {
      for (const choice of [0, 1]) {
        const samples = new Samples(choice)
        const sent = samples.message(request)
        answer = agreeing(rpc, sent, samples.message(response))
        const received = await made(rpc, inDomain(request, sent))
        const { requestSerialize, requestDeserialize } = definitions[rpc]!
        expect(asked).to.deep.equal(requestDeserialize(requestSerialize(sent)))
        if (response.fieldsArray.length === 0) expect(received).to.equal(undefined)
        else expect(received).to.deep.equal(inDomain(response, answer as Record<string, unknown>))
      }
    })
  }

  describe('tells absent, empty and zero apart where the wire does', () => {
    const none = { names: [], unknown: [] }
    /** What an answer without any field is; ERR_CSI_PROTOCOL and the field where it has to have one. */
    const empty: Record<string, unknown> = {
      GetPluginInfo: 'name',
      GetPluginCapabilities: { service: none, volumeExpansion: none },
      Probe: {},
      CreateVolume: 'volume',
      ControllerPublishVolume: { publishContext: {} },
      ValidateVolumeCapabilities: {},
      ListVolumes: { entries: [] },
      GetCapacity: { availableBytes: 0n },
      ControllerGetCapabilities: none,
      CreateSnapshot: 'snapshot',
      ListSnapshots: { entries: [] },
      GetSnapshot: 'snapshot',
      ControllerExpandVolume: { nodeExpansionRequired: false },
      ControllerGetVolume: 'volume',
      ControllerGetVolumeHealth: 'volumeHealth',
      ControllerListVolumeHealth: { entries: [] },
      GroupControllerGetCapabilities: none,
      CreateVolumeGroupSnapshot: 'groupSnapshot',
      GetVolumeGroupSnapshot: 'groupSnapshot',
      GetMetadataAllocated: { blockMetadataType: 'UNKNOWN', volumeCapacityBytes: 0n, blockMetadata: [] },
      GetMetadataDelta: { blockMetadataType: 'UNKNOWN', volumeCapacityBytes: 0n, blockMetadata: [] },
      NodeGetVolumeStats: { usage: [] },
      NodeExpandVolume: {},
      NodeGetCapabilities: none,
      NodeGetInfo: 'nodeId',
      NodeGetVolumeHealth: 'volumeHealth',
      NodeGetStorageHealth: { backendHealth: [] },
    }
    for (const { rpc, request, response } of rpcs) {
      if (response.fieldsArray.length === 0) continue
      it(`in an empty answer to ${rpc}`, async () => {
        answer = {}
        const received = await Promise.resolve(made(rpc, inDomain(request, new Samples(0).message(request)))).catch(
          (error: unknown) => error,
        )
        if (typeof empty[rpc] !== 'string') expect(received).to.deep.equal(empty[rpc])
        else {
          expect(received).to.be.instanceOf(PlugstreamError)
          expect((received as PlugstreamError).code).to.equal('ERR_CSI_PROTOCOL')
          expect((received as PlugstreamError).details).to.deep.equal({ rpc, field: empty[rpc] })
        }
      })
    }

    const volume = { volume_id: 'v' }
    const own = { volumeId: 'v', volumeContext: {}, accessibleTopology: [] }
    const snapshot = { snapshot_id: 's', source_volume_id: 'v', creation_time: { seconds: 0, nanos: 0 } }
    const cases: [string, string, object, unknown][] = [
      ['ready that is false without saying so', 'Probe', { ready: {} }, { ready: false }],
      [
        'a largest volume of 0 bytes',
        'GetCapacity',
        { maximum_volume_size: {} },
        { availableBytes: 0n, maximumVolumeBytes: 0n },
      ],
      [
        'a volume whose capacity is not known',
        'CreateVolume',
        { volume: { ...volume, capacity_bytes: 0 } },
        { volume: own },
      ],
      ['a source of no sort', 'CreateVolume', { volume: { ...volume, content_source: {} } }, { volume: own }],
      [
        'places without segments',
        'CreateVolume',
        { volume: { ...volume, accessible_topology: [{}, { segments: { region: '' } }] } },
        { volume: { ...own, accessibleTopology: [{}, { region: '' }] } },
      ],
      [
        'an instant at the beginning of time',
        'GetSnapshot',
        { snapshot },
        { snapshot: { snapshotId: 's', sourceVolumeId: 'v', createdAt: 0, readyToUse: false, accessibleTopology: [] } },
      ],
      ['an empty place of a node', 'NodeGetInfo', { node_id: 'n', accessible_topology: {} }, { nodeId: 'n' }],
      ['a limit below zero', 'NodeGetInfo', { node_id: 'n', max_volumes_per_node: -1 }, { nodeId: 'n' }],
      [
        'the largest limit',
        'NodeGetInfo',
        { node_id: 'n', max_volumes_per_node: '9223372036854775807' },
        { nodeId: 'n', maxVolumesPerNode: 2n ** 63n - 1n },
      ],
      [
        'a node without a name',
        'ListVolumes',
        { entries: [{ volume, status: { published_node_ids: [''] } }] },
        { entries: [{ volume: own, status: { publishedNodeIds: [] } }] },
      ],
      [
        'a condition that is well',
        'NodeGetVolumeStats',
        { volume_condition: { message: 'fine' } },
        { usage: [], health: { healthy: true, problems: [] } },
      ],
      [
        'a health without a problem',
        'NodeGetVolumeHealth',
        { volume_health: volume },
        { volumeHealth: { volumeId: 'v', healthy: true, problems: [] } },
      ],
      [
        'a problem of a later version, which says nothing of health',
        'NodeGetVolumeHealth',
        { volume_health: { ...volume, health_statuses: [{ status: 9 }] } },
        { volumeHealth: { volumeId: 'v', healthy: true, problems: [{ status: 9 }] } },
      ],
      [
        'a capability without kind and mode, and one of a later version',
        'ValidateVolumeCapabilities',
        { confirmed: { volume_capabilities: [{}, { block: {}, access_mode: { mode: 9 } }] } },
        {
          confirmed: {
            volumeContext: {},
            volumeCapabilities: [
              { kind: 'unknown', accessMode: 'UNKNOWN' },
              { kind: 'block', accessMode: 9 },
            ],
            parameters: {},
            mutableParameters: {},
          },
        },
      ],
      [
        'entries without content, twice, unknown, and of a later version',
        'NodeGetCapabilities',
        { capabilities: [{}, { rpc: {} }, { rpc: { type: 2 } }, { rpc: { type: 2 } }, { rpc: { type: 77 } }] },
        { names: ['GET_VOLUME_STATS'], unknown: [77] },
      ],
    ]
    for (const [title, rpc, wire, expected] of cases) {
      it(`in ${title}`, async () => {
        const { request } = rpcs.find((one) => one.rpc === rpc)!
        answer = wire
        const { volume_content_source: _named, ...sent } = new Samples(0).message(request)
        expect(await made(rpc, inDomain(request, sent))).to.deep.equal(expected)
      })
    }
  })
})

type Wire = Record<string, unknown>

/** An answer that is about what was asked for: one about something else is refused. */
function agreeing(rpc: string, { volume_content_source, source_volume_id }: Wire, answer: Wire): Wire {
  if (rpc === 'CreateVolume') (answer['volume'] as Wire)['content_source'] = volume_content_source
  if (rpc === 'CreateSnapshot') (answer['snapshot'] as Wire)['source_volume_id'] = source_volume_id
  return answer
}
