import { expect } from 'chai'
import type { PluginScript } from '../testing/plugin-script.js'
import { aVolumeStory, block, diskTask, failureOf, requestsOf, use, volumeCalls } from './quirks-support.js'
import { aStory, isHealthy, kindsOf, pluginTask, shortTiming } from './support.js'
import { phasesOf } from './volumes-support.js'

/** What NodeGetInfo answers, and what is made of it. */
const places: readonly [what: string, answer: object, read: object][] = [
  ['a limit of 0, which is none', { max_volumes_per_node: '0' }, {}],
  ['a limit below 0, which is none', { max_volumes_per_node: '-1' }, {}],
  ['a limit', { max_volumes_per_node: '25' }, { maxVolumes: 25 }],
  ['no topology', { accessible_topology: null }, {}],
  ['a topology without a segment', { accessible_topology: { segments: {} } }, {}],
  [
    'a topology with a key without a prefix',
    { accessible_topology: { segments: { region: 'fra1' } } },
    { topology: { region: 'fra1' } },
  ],
  [
    'a topology with an empty value',
    { accessible_topology: { segments: { 'topology.disk.example/zone': '' } } },
    { topology: { 'topology.disk.example/zone': '' } },
  ],
]

describe('a driver that says of its node', () => {
  for (const [what, answer, read] of places)
    it(
      `${what} is read so, and well`,
      aStory({}, async ({ fingerprints, start }) => {
        await start(pluginTask(), {
          capabilities: { node: [] },
          replies: { NodeGetInfo: [{ response: { node_id: 'projects/p/zones/z/instances/n', ...answer } }] },
        })
        const { node } = await fingerprints.until(isHealthy)
        expect(node).to.deep.equal({ names: [], unknown: [], id: 'projects/p/zones/z/instances/n', ...read })
      }),
    )

  // kubernetes-sigs/aws-ebs-csi-driver#1139, #1258
  it(
    'another limit and place each time is read again while it runs',
    aStory({ timing: { fingerprintIntervalMs: 50 } }, async ({ fingerprints, health, start }) => {
      const plugin = await start(pluginTask(), { maxVolumes: 25, topology: { zone: 'a' } })
      await fingerprints.until(({ node }) => node?.maxVolumes === 25)
      await plugin.change({ maxVolumes: 24, topology: { zone: 'b' } })
      const { node } = await fingerprints.until(({ node }) => node?.maxVolumes === 24)
      expect(node?.topology).to.deep.equal({ zone: 'b' })
      expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
    }),
  )
})

describe('a driver that lists as its capabilities', () => {
  it(
    'what is unknown, empty and twice has what is known of it, and is used by that',
    aVolumeStory(async ({ volumes, fingerprints, start }) => {
      const rpcs = [
        {},
        { rpc: {} },
        { rpc: { type: 0 } },
        { rpc: { type: 4_711 } },
        { rpc: { type: 'STAGE_UNSTAGE_VOLUME' } },
        { rpc: { type: 'STAGE_UNSTAGE_VOLUME' } },
      ]
      const plugin = await start(diskTask('node'), {
        replies: { NodeGetCapabilities: [{ response: { capabilities: rpcs }, repeat: true }] },
      })
      const { node } = await fingerprints.until(isHealthy)
      expect(node).to.deep.include({ names: ['STAGE_UNSTAGE_VOLUME'], unknown: [4_711] })
      await volumes.mount(use)
      expect(volumeCalls(plugin)).to.deep.equal(['NodeStageVolume', 'NodePublishVolume'])
    }),
  )

  it(
    'nothing is asked for no more than to publish and unpublish',
    aVolumeStory(async ({ volumes, start }) => {
      const plugin = await start(diskTask(), { capabilities: { plugin: [], controller: [], node: [] } })
      const mounted = await volumes.mount(use)
      expect(requestsOf(plugin, 'NodePublishVolume')[0]).to.include({ staging_target_path: '' })
      await mounted.unmount()
      expect(volumeCalls(plugin)).to.deep.equal(['NodePublishVolume', 'NodeUnpublishVolume'])
      expect(volumes.list()).to.deep.equal([])
    }),
  )
})

describe('a driver that says of itself', () => {
  for (const [name, version] of [
    ['disk-csi-driver', 'N/A'],
    ['PXD.Disk.example', ''],
    ['x'.repeat(63), '1.0.0-rc.1+dirty (2024-10-01)'],
  ] as const)
    it(
      `that it is ${name.slice(0, 20)} ${version}, and more that nobody asked for, is taken at its word`,
      aStory({}, async ({ health, registry, start }) => {
        const response = { name, vendor_version: version, manifest: { driver: 'disk', url: 'https://disk.example' } }
        await start(pluginTask(), { replies: { GetPluginInfo: [{ response, repeat: true }] } })
        await health.until(isHealthy)
        expect(registry.all.map(({ plugin }) => plugin)).to.have.length(1)
        expect(registry.all[0]?.plugin).to.include({ name: 'ebs', provider: name, version })
      }),
    )
})

// kubernetes-csi/node-driver-registrar#405, #497
describe('a driver that does not say who it is', () => {
  const answers: readonly [what: string, replies: PluginScript['replies']][] = [
    [
      'as long as it is not configured',
      { GetPluginInfo: [1, 2, 3].map(() => ({ status: 'UNAVAILABLE', message: 'no name is configured' })) },
    ],
    ['at the first time it is asked', { GetPluginInfo: [{ fault: 'hang' }] }],
  ]
  for (const [what, replies] of answers)
    it(
      `${what} is asked again, and registered when it does`,
      aStory({ timing: { ...shortTiming, rpcTimeoutMs: 100 } }, async ({ registry, health, restarts, start }) => {
        const plugin = await start(pluginTask(), { replies: replies ?? {} })
        await health.until(isHealthy)
        expect(kindsOf(registry.all)).to.deep.equal(['registered'])
        expect(requestsOf(plugin, 'GetPluginInfo')).to.have.length.above(1)
        expect(restarts.all).to.deep.equal([])
      }),
    )

  // kubernetes/kubernetes#118317, #127108, #133725, #71487. An error without a status is UNKNOWN on the wire.
  for (const status of ['UNKNOWN', 'INTERNAL', 'UNIMPLEMENTED'] as const)
    it(
      `or what its node is, with ${status}, is asked again until it does, by itself`,
      aStory({ timing: { unhealthyBeatMs: 50 } }, async ({ fingerprints, health, registry, start }) => {
        const reply = { status, message: 'the node has no labels yet' }
        await start(pluginTask(), { replies: { NodeGetInfo: [reply, reply, reply, reply] } })
        const unread = await fingerprints.until(({ healthy }) => !healthy)
        expect(unread.healthDescription).to.equal(`NodeGetInfo failed: ${status}: the node has no labels yet`)
        const { node } = await fingerprints.until(isHealthy)
        expect(node?.id).to.equal('node-1')
        expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready'])
        expect(kindsOf(registry.all)).to.deep.equal(['registered'])
      }),
    )
})

describe('the ids and sizes of a driver', () => {
  for (const id of [
    'a=b&c=d',
    'share/with a blank/ü',
    '0e4c…',
    'host#/export#pvc-1##',
    '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  ])
    it(
      `go to it as it gave them, through the whole life of a volume: ${id}`,
      aVolumeStory(async ({ volumes, start }) => {
        const plugin = await start(diskTask(), {
          replies: { CreateVolume: [{ response: { volume: { volume_id: id } } }] },
        })
        const { volume } = await volumes.create({ plugin: 'disk', name: 'data', volumeCapabilities: [block] })
        expect(volume.volumeId).to.equal(id)
        const mounted = await volumes.mount({ ...use, volumeId: id })
        const other = await volumes.mount({ ...use, volumeId: `${id}/` })
        expect(other.path).to.not.equal(mounted.path)
        await other.unmount()
        await mounted.unmount()
        await volumes.delete({ plugin: 'disk', volumeId: id })
        const asked = new Set(plugin.calls.map(({ request }) => request['volume_id']))
        expect([...asked]).to.deep.equal([undefined, id, `${id}/`])
        expect(requestsOf(plugin, 'DeleteVolume')).to.deep.equal([{ volume_id: id, secrets: {} }])
      }),
    )

  const sizes: readonly [what: string, sent: string, read: bigint | undefined][] = [
    ['0 for one it does not know', '0', undefined],
    ['above 2^53, to the byte', '9007199254740995', 9_007_199_254_740_995n],
    ['that its own numbers could not hold, as it tells them', '9007199254740996', 9_007_199_254_740_996n],
  ]
  for (const [what, sent, read] of sizes)
    it(
      `are taken for what they are: ${what}`,
      aVolumeStory(async ({ volumes, start }) => {
        const plugin = await start(diskTask(), {
          replies: { CreateVolume: [{ response: { volume: { volume_id: 'v1', capacity_bytes: sent } } }] },
        })
        const { volume } = await volumes.create({
          plugin: 'disk',
          name: 'data',
          volumeCapabilities: [block],
          capacityRange: { requiredBytes: 9_007_199_254_740_995n },
        })
        expect(volume.capacityBytes).to.equal(read)
        const [request] = requestsOf(plugin, 'CreateVolume')
        expect(request?.['capacity_range']).to.deep.equal({ required_bytes: '9007199254740995', limit_bytes: '0' })
      }),
    )
})

describe('the words of a driver that fails', () => {
  const stack = [
    'TypeError: x is null',
    ...Array.from({ length: 40 }, (_, at) => `    at f${at} (/opt/driver/src/${at}.js:1:1)`),
  ]
  const words: readonly [what: string, message: string, shown: RegExp][] = [
    ['nothing at all', '', /^NodePublishVolume failed: INTERNAL$/],
    ['JSON of some kilobytes', JSON.stringify({ code: 32, stderr: 'x'.repeat(8_000) }), /^.{1,600}…$/],
    ['a stack trace', stack.join('\n'), /^NodePublishVolume failed: INTERNAL: TypeError: x is null$/],
    ['many lines', 'mount failed\n\texit status 32\r\noutput: ', /: mount failed exit status 32 output:$/],
  ]
  for (const [what, message, shown] of words)
    it(
      `are one short line for whoever hears of it: ${what}`,
      aVolumeStory(async ({ volumes, events, states, start }) => {
        const fails = { status: 'INTERNAL', message } as const
        await start(diskTask(), {
          replies: { NodePublishVolume: [fails], NodeUnpublishVolume: [{ ...fails, repeat: true }] },
        })
        const failure = await failureOf(volumes.mount(use))
        expect(failure.message).to.match(shown)
        const failed = await events.until(({ kind }) => kind === 'failed')
        expect(failed.message).to.equal(failure.message)
        // It could not be undone either, and that is shown likewise.
        await states.until((all) => all.some(({ claims }) => claims.some(({ problem }) => problem !== undefined)))
        expect(phasesOf(volumes.list())).to.deep.equal(['web unmounting'])
        const [claim] = volumes.list()[0]?.claims ?? []
        expect(claim?.problem?.replace('Unpublish', 'Publish')).to.match(shown)
      }),
    )
})
