import { expect } from 'chai'
import type { PluginScript } from '../../testing/plugin-script.js'
import { caught, clientsOfPlugins, volume } from './client-support.js'

const ofSnapshot = { kind: 'snapshot', snapshotId: 's1' } as const
const ofVolume = { kind: 'volume', volumeId: 'v1' } as const

describe('an answer about something else than was asked for', () => {
  const { connect } = clientsOfPlugins()
  const scripted = (rpc: 'CreateVolume' | 'CreateSnapshot', response?: object): PluginScript => ({
    capabilities: { controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] },
    ...(response && { replies: { [rpc]: [{ response }] } }),
  })

  for (const [what, source, made, said] of [
    [
      'a clone that says nothing of its source',
      ofVolume,
      undefined,
      'is made of nothing, and was to be of volume "v1"',
    ],
    [
      'a clone of another volume',
      ofVolume,
      { volume: { volume_id: 'v2' } },
      'is made of volume "v2", and was to be of volume "v1"',
    ],
    [
      'a volume of another snapshot',
      ofSnapshot,
      { snapshot: { snapshot_id: 's2' } },
      'is made of snapshot "s2", and was to be of snapshot "s1"',
    ],
    [
      'a volume of a volume, for one of a snapshot of that id',
      { kind: 'snapshot', snapshotId: 'v1' } as const,
      { volume: { volume_id: 'v1' } },
      'is made of volume "v1", and was to be of snapshot "v1"',
    ],
  ] as const)
    it(`is refused, and the volume named, as there is one: ${what}`, async () => {
      const answered = { volume_id: 'new', capacity_bytes: '1', ...(made && { content_source: made }) }
      const { client, asked } = await connect(scripted('CreateVolume', { volume: answered }))
      const failure = await caught(client.createVolume({ ...volume, volumeContentSource: source }))
      expect(failure).to.include({ code: 'ERR_CSI_PROTOCOL', retryable: false })
      expect(failure.message).to.equal(`CreateVolume: in the answer, volume "new" ${said}`)
      expect(failure.details).to.deep.equal({
        rpc: 'CreateVolume',
        field: 'volume.contentSource',
        volumeId: 'new',
      })
      expect(asked().filter((rpc) => rpc === 'CreateVolume')).to.have.length(1)
    })

  it('is refused where it is a snapshot of another volume', async () => {
    const snapshot = { snapshot_id: 's', source_volume_id: 'v2', creation_time: { seconds: '1' }, ready_to_use: true }
    const { client } = await connect(scripted('CreateSnapshot', { snapshot }))
    const failure = await caught(client.createSnapshot({ name: 's', sourceVolumeId: 'v1' }))
    expect(failure.code).to.equal('ERR_CSI_PROTOCOL')
    expect(failure.message).to.equal(
      'CreateSnapshot: in the answer, snapshot "s" is of volume "v2", and was to be of "v1"',
    )
    expect(failure.details).to.deep.equal({
      rpc: 'CreateSnapshot',
      field: 'snapshot.sourceVolumeId',
      snapshotId: 's',
    })
  })

  for (const [what, source] of [
    ['a clone', ofVolume],
    ['a volume of a snapshot', ofSnapshot],
    ['an empty volume', undefined],
  ] as const)
    it(`is not ${what} that says so`, async () => {
      const { client } = await connect(scripted('CreateVolume'))
      const request = { ...volume, ...(source && { volumeContentSource: source }) }
      const { volume: made } = await client.createVolume(request)
      expect(made.contentSource).to.deep.equal(source)
    })

  it('is not a snapshot of the volume', async () => {
    const snapshot = { snapshot_id: 's', source_volume_id: 'v1', creation_time: { seconds: '1' }, ready_to_use: true }
    const { client } = await connect(scripted('CreateSnapshot', { snapshot }))
    expect((await client.createSnapshot({ name: 's', sourceVolumeId: 'v1' })).snapshot.sourceVolumeId).to.equal('v1')
  })
})
