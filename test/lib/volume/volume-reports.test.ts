import { expect } from 'chai'
import { checkRequest } from '../../../lib/csi/check-request.js'
import type { CsiClient } from '../../../lib/csi/client.js'
import type { VolumeHealth } from '../../../lib/csi/messages/health.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import type { VolumeFiles, VolumePorts } from '../../../lib/volume/ports.js'
import { PluginHalves } from '../../../lib/volume/plugin-halves.js'
import { VolumeReports } from '../../../lib/volume/volume-reports.js'
import type { MountedVolume, MountRequest, SecretsRequest, VolumeRef } from '../../../lib/volume/volume.js'
import { gate } from '../../fakes/fake-store.js'
import { fakeHost, FakePlugin, fakePorts, hostRoot, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { failureOf, refused, settled } from './support.js'

const ref = { plugin: 'disk', volumeId: 'v1' }
const request: MountRequest = { ...ref, allocId: 'a' }
const stagingTargetPath = `${hostRoot}/staging/default/v1/mount-single-node-writer`
const capacityRange = { requiredBytes: 2n ** 53n + 1n }

const well: VolumeHealth = { healthy: true, problems: [] }
const sick: VolumeHealth = { healthy: false, problems: [{ status: 'ABNORMAL', message: 'the disk is on fire' }] }

/** The calls of a plugin beside those that mount. */
const reports = [
  'nodeGetVolumeHealth',
  'nodeGetVolumeStats',
  'nodeExpandVolume',
  'controllerGetVolumeHealth',
  'controllerGetVolume',
  'controllerExpandVolume',
] as const
type Answers = Partial<Record<(typeof reports)[number], (request: object) => unknown>>

interface Asked {
  call: string
  request: object
}

/** A plugin that has the calls it is given, and no others beside mounting. */
class Reporter extends FakePlugin {
  readonly asked: Asked[] = []
  answers: Answers = {}

  readonly reporting = new Proxy({} as CsiClient, {
    get: (_, name: keyof CsiClient) => {
      const call = reports.find((one) => one === name)
      if (!call) return this.client[name]
      return async (request: object) => {
        const answer = this.answers[call]
        if (!answer) throw new PlugstreamError('ERR_CSI_UNSUPPORTED', `${call}: the plugin does not advertise it`)
        this.asked.push({ call, request })
        return answer(request)
      }
    },
  })

  get asks(): string[] {
    return this.asked.map(({ call }) => call)
  }
}

/** Tells a story about a volume that is mounted. */
const withVolume =
  (
    tell: (plugin: Reporter, reports: VolumeReports, volume: MountedVolume, host: FakeHost) => Promise<void>,
    over: Partial<VolumePorts> = {},
    mount: Partial<MountRequest> = {},
  ) =>
  async (): Promise<void> => {
    const plugin = new Reporter()
    const host = await fakeHost(plugin, new Map(), { client: () => plugin.reporting, check: checkRequest, ...over })
    const { ports, operations, manager } = host
    const halves = new PluginHalves(ports, operations)
    const reports = new VolumeReports(ports, operations, halves, manager)
    try {
      await tell(plugin, reports, await manager.mount({ ...request, ...mount }), host)
    } finally {
      await host.close()
    }
  }

describe('the usage of a mounted volume', () => {
  it(
    'is what its plugin says of the place where it is published',
    withVolume(async (plugin, reports, { path }) => {
      const answer = { usage: [{ unit: 'BYTES', totalBytes: 7n }] }
      plugin.answers.nodeGetVolumeStats = () => answer
      expect(await reports.stats(ref)).to.equal(answer)
      expect(plugin.asked).to.deep.equal([
        { call: 'nodeGetVolumeStats', request: { volumeId: 'v1', volumePath: path, stagingTargetPath } },
      ])
    }),
  )

  it(
    'is refused where the plugin does not say',
    withVolume(async (_plugin, reports) => {
      await failureOf(reports.stats(ref), 'ERR_CSI_UNSUPPORTED')
    }),
  )

  it('is asked for without a place of staging where there is none, and at the places as the plugin sees them', async () => {
    const plugin = new Reporter()
    plugin.capabilities.delete('stage')
    const host = await fakeHost(plugin, new Map(), { client: () => plugin.reporting })
    const ready: VolumePorts['ready'] = async (...words) => {
      const info = await host.ports.ready(...words)
      return { ...info, options: { ...info.options, containerMountPoint: '/local/csi' } }
    }
    const halves = new PluginHalves({ ...host.ports, ready }, host.operations)
    const reports = new VolumeReports(host.ports, host.operations, halves, host.manager)
    const { path } = await host.manager.mount(request)
    plugin.answers.nodeGetVolumeStats = () => ({ usage: [] })
    await reports.stats(ref)
    expect(plugin.asked[0]!.request).to.deep.equal({ volumeId: 'v1', volumePath: path.replace(hostRoot, '/local/csi') })
    await host.close()
  })

  it(
    'waits for what is going on with the volume, and for nothing else',
    withVolume(async (plugin, reports, _volume, { manager }) => {
      const end = gate()
      plugin.answers.nodeGetVolumeStats = () => ({ usage: [] })
      plugin.fail('NodePublishVolume', () => end.opened)
      const mounting = manager.mount({ ...request, allocId: 'b' })
      const asking = reports.stats(ref)
      await manager.mount({ ...request, volumeId: 'v2' })
      await reports.stats({ ...ref, volumeId: 'v2' })
      await settled()
      expect(
        plugin.asked.map(({ request: { volumeId } }: { request: { volumeId?: string } }) => volumeId),
      ).to.deep.equal(['v2'])
      end.open()
      await Promise.all([mounting, asking])
      expect(plugin.asked).to.have.length(2)
    }),
  )
})

describe('the health of a mounted volume', () => {
  it(
    'is what its plugin says on the node',
    withVolume(async (plugin, reports, { path }) => {
      plugin.answers = { nodeGetVolumeHealth: () => ({ volumeHealth: { volumeId: 'v1', ...sick } }) }
      expect(await reports.health(ref)).to.deep.equal(sick)
      expect(plugin.asked).to.deep.equal([
        { call: 'nodeGetVolumeHealth', request: { volumeId: 'v1', volumePublishPath: path, stagingTargetPath } },
      ])
    }),
  )

  it(
    'is the condition that comes with its usage where the plugin is of a CSI before 1.13',
    withVolume(async (plugin, reports) => {
      plugin.answers = {
        nodeGetVolumeStats: () => ({ usage: [], health: sick }),
        controllerGetVolumeHealth: () => ({ volumeHealth: well }),
      }
      expect(await reports.health(ref)).to.deep.equal(sick)
      expect(plugin.asks).to.deep.equal(['nodeGetVolumeStats'])
    }),
  )

  it(
    'is what its plugin says in the controller where it says nothing on the node',
    withVolume(async (plugin, reports) => {
      plugin.answers = {
        nodeGetVolumeStats: () => ({ usage: [] }),
        controllerGetVolumeHealth: () => ({ volumeHealth: sick }),
      }
      expect(await reports.health(ref)).to.deep.equal(sick)
      expect(plugin.asks).to.deep.equal(['nodeGetVolumeStats', 'controllerGetVolumeHealth'])
    }),
  )

  it(
    'is what the controller says of the volume before CSI 1.13',
    withVolume(async (plugin, reports) => {
      plugin.answers = { controllerGetVolume: () => ({ volume: { volumeId: 'v1' }, status: { health: sick } }) }
      expect(await reports.health(ref)).to.deep.equal(sick)
    }),
  )

  it(
    'is not asked of a controller that is not on this host',
    withVolume(
      async (plugin, reports) => {
        plugin.answers = { controllerGetVolumeHealth: () => ({ volumeHealth: sick }) }
        expect(await reports.health(ref)).to.deep.equal(well)
        expect(plugin.asks).to.deep.equal([])
      },
      { isRegistered: (type) => type === 'csi-node' },
    ),
  )

  it(
    'is taken for good where nobody says anything',
    withVolume(async (plugin, reports) => {
      expect(await reports.health(ref)).to.deep.equal(well)
      plugin.answers = { nodeGetVolumeStats: () => ({ usage: [] }), controllerGetVolume: () => ({ volume: {} }) }
      expect(await reports.health(ref)).to.deep.equal(well)
    }),
  )

  it(
    'fails where its plugin fails: then nothing is known',
    withVolume(async (plugin, reports) => {
      const failure = rpcFailure('INTERNAL')
      plugin.answers = {
        nodeGetVolumeHealth: () => Promise.reject(failure),
        nodeGetVolumeStats: () => ({ usage: [], health: well }),
      }
      expect(await failureOf(reports.health(ref))).to.equal(failure)
    }),
  )

  for (const [what, answers] of [
    ['whatever its plugin says', { nodeGetVolumeHealth: () => ({ volumeHealth: well }) }],
    ['also where the plugin fails at it', { nodeGetVolumeHealth: () => Promise.reject(rpcFailure('INTERNAL')) }],
  ] as [string, Answers][])
    it(
      `is bad where a mount of it is dead, ${what}`,
      withVolume(async (plugin, reports, { path }, { manager }) => {
        await manager.mount({ ...request, allocId: 'b' })
        plugin.answers = answers
        plugin.pathStates.set(path, 'stale')
        manager.pluginReady('disk')
        await settled()
        expect(await reports.health(ref)).to.deep.equal({
          healthy: false,
          problems: [{ status: 'INACCESSIBLE', reason: 'MountIsDead', message: `looked at ${path}` }],
        })
      }),
    )

  it(
    'is bad where somebody else has unmounted it, from then on, for each use of it',
    withVolume(async (plugin, reports, { path }, { manager }) => {
      await manager.mount({ ...request, allocId: 'b' })
      plugin.answers = { nodeGetVolumeHealth: () => ({ volumeHealth: well }) }
      expect(await reports.health(ref)).to.deep.equal(well)
      plugin.lose(path)
      const lost = { status: 'INACCESSIBLE', reason: 'NotMounted', message: `nothing is mounted at ${path}` }
      for (const _ of ['first', 'again'])
        expect(await reports.health(ref)).to.deep.equal({ healthy: false, problems: [lost] })
      const phases = manager.list().flatMap(({ claims }) => claims.map(({ phase }) => phase))
      expect(phases).to.deep.equal(['stale', 'mounted'])
      await manager.mount(request)
      expect(await reports.health(ref)).to.deep.equal(well)
    }),
  )

  for (const [what, over, mount] of [
    [
      'a block device, for which no mount is promised',
      {},
      { access: { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' } },
    ],
    ['a directory of a plugin that may not mount', { expectsMounts: false }, {}],
    ['a place where mounts cannot be seen', { mounts: () => Promise.resolve(undefined) }, {}],
  ] as [string, Partial<VolumeFiles>, Partial<MountRequest>][])
    it(`does not miss a mount of ${what}`, async () => {
      const { files } = fakePorts(new FakePlugin(), new Map())
      await withVolume(
        async (plugin, reports, { path }) => {
          plugin.lose(path)
          expect(await reports.health(ref)).to.deep.equal(well)
        },
        { files: { ...files, mounts: () => Promise.resolve([]), expectsMounts: false, ...over } },
        mount,
      )()
    })

  it(
    'has the problems that the plugin tells of before those the host sees',
    withVolume(async (plugin, reports, { path }, { manager }) => {
      plugin.answers = { nodeGetVolumeHealth: () => ({ volumeHealth: sick }) }
      plugin.pathStates.set(path, 'stale')
      manager.pluginReady('disk')
      await settled()
      const { healthy, problems } = await reports.health(ref)
      expect([healthy, problems.map(({ status }) => status)]).to.deep.equal([false, ['ABNORMAL', 'INACCESSIBLE']])
    }),
  )
})

describe('the growth of a mounted volume', () => {
  const volumeCapability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }
  const inStorage = { volumeId: 'v1', capacityRange, volumeCapability }

  it(
    'is made in the storage, and then on the node where that is needed',
    withVolume(async (plugin, reports, { path }) => {
      plugin.answers = {
        controllerExpandVolume: () => ({ capacityBytes: 8n, nodeExpansionRequired: true }),
        nodeExpandVolume: () => ({ capacityBytes: 9n }),
      }
      expect(await reports.expand({ ...ref, capacityRange })).to.deep.equal({ capacityBytes: 9n })
      expect(plugin.asked).to.deep.equal([
        { call: 'controllerExpandVolume', request: inStorage },
        { call: 'nodeExpandVolume', request: { ...inStorage, volumePath: path, stagingTargetPath } },
      ])
    }),
  )

  it(
    'ends in the storage where the node need not do anything',
    withVolume(async (plugin, reports) => {
      plugin.answers = { controllerExpandVolume: () => ({ capacityBytes: 8n, nodeExpansionRequired: false }) }
      expect(await reports.expand({ ...ref, capacityRange })).to.deep.equal({ capacityBytes: 8n })
    }),
  )

  it(
    'has the size that the storage told where the node tells none',
    withVolume(async (plugin, reports) => {
      plugin.answers = {
        controllerExpandVolume: () => ({ capacityBytes: 8n, nodeExpansionRequired: true }),
        nodeExpandVolume: () => ({}),
      }
      expect(await reports.expand({ ...ref, capacityRange })).to.deep.equal({ capacityBytes: 8n })
    }),
  )

  it(
    'is made on the node alone where the controller cannot',
    withVolume(async (plugin, reports) => {
      plugin.answers = { nodeExpandVolume: () => ({}) }
      expect(await reports.expand({ ...ref, capacityRange })).to.deep.equal({})
      expect(plugin.asks).to.deep.equal(['nodeExpandVolume'])
    }),
  )

  it(
    'is made on the node alone where there is no controller on this host',
    withVolume(
      async (plugin, reports) => {
        plugin.answers = {
          nodeExpandVolume: () => ({ capacityBytes: 9n }),
          controllerExpandVolume: () => ({ capacityBytes: 8n, nodeExpansionRequired: false }),
        }
        expect(await reports.expand({ ...ref, capacityRange })).to.deep.equal({ capacityBytes: 9n })
        expect(plugin.asks).to.deep.equal(['nodeExpandVolume'])
      },
      { isRegistered: (type) => type === 'csi-node' },
    ),
  )

  it(
    'fails where neither can, and where one of them fails',
    withVolume(async (plugin, reports) => {
      await failureOf(reports.expand({ ...ref, capacityRange }), 'ERR_CSI_UNSUPPORTED')
      const failure = rpcFailure('OUT_OF_RANGE')
      plugin.answers = { controllerExpandVolume: () => Promise.reject(failure), nodeExpandVolume: () => ({}) }
      expect(await failureOf(reports.expand({ ...ref, capacityRange }))).to.equal(failure)
      expect(plugin.asks).to.deep.equal(['controllerExpandVolume'])
    }),
  )

  it('has the secrets of the mount, or the ones that are named, in the storage and on the node', async () => {
    const asked: string[] = []
    const secrets = async ({ secretsRef, rpc }: SecretsRequest): Promise<Record<string, string>> => {
      if (rpc.includes('Expand')) asked.push(`${rpc} ${secretsRef}`)
      return { password: secretsRef }
    }
    await withVolume(
      async (plugin, reports) => {
        plugin.answers = {
          controllerExpandVolume: () => ({ capacityBytes: 8n, nodeExpansionRequired: true }),
          nodeExpandVolume: () => ({}),
        }
        await reports.expand({ ...ref, capacityRange })
        await reports.expand({ ...ref, capacityRange, secretsRef: 'others' })
        expect(asked).to.deep.equal([
          'ControllerExpandVolume keys',
          'NodeExpandVolume keys',
          'ControllerExpandVolume others',
          'NodeExpandVolume others',
        ])
        const passed = plugin.asked.map(({ request }) => (request as { secrets: unknown }).secrets)
        expect(passed.slice(2)).to.deep.equal([{ password: 'others' }, { password: 'others' }])
      },
      { secrets },
      { secretsRef: 'keys' },
    )()
  })

  it(
    'is refused for a size that cannot be, or names that are none, by the field',
    withVolume(async (plugin, reports) => {
      const fieldOf = (over: object): Promise<unknown> =>
        refused(() => reports.expand({ ...ref, capacityRange, ...over }))
      expect(await fieldOf({ capacityRange: { requiredBytes: -1n } })).to.equal('capacityRange.requiredBytes')
      expect(await fieldOf({ capacityRange: { limitBytes: 2n ** 63n } })).to.equal('capacityRange.limitBytes')
      expect(await fieldOf({ capacityRange: undefined })).to.equal('capacityRange')
      expect(await fieldOf({ secretsRef: '' })).to.equal('secretsRef')
      expect(await fieldOf({ volumeId: '..' })).to.equal('volumeId')
      expect(plugin.asks).to.deep.equal([])
    }),
  )
})

describe('a growth of which nobody knows what became', () => {
  const unknown = rpcFailure('DEADLINE_EXCEEDED', 'unknown')
  const growthOf = ({ records }: FakeHost): unknown =>
    (JSON.parse([...records.values()].join()) as { growth?: unknown }).growth

  it(
    'is on record from before the first call until its end, sizes to the byte, and not after it',
    withVolume(async (plugin, reports, _volume, host) => {
      const seen: unknown[] = []
      plugin.answers = {
        controllerExpandVolume: () => (seen.push(growthOf(host)), { capacityBytes: 8n, nodeExpansionRequired: true }),
        nodeExpandVolume: () => (seen.push(growthOf(host)), {}),
      }
      await reports.expand({ ...ref, capacityRange, secretsRef: 'others' })
      const growth = { capacityRange: { requiredBytes: '9007199254740993' }, secretsRef: 'others' }
      expect(seen).to.deep.equal([growth, growth])
      expect(growthOf(host)).to.equal(undefined)
    }),
  )

  for (const rpc of ['ControllerExpandVolume', 'NodeExpandVolume'])
    it(`goes on when its plugin is back, and with the next host, after ${rpc}, with its secrets`, async () => {
      const plugin = new FakePlugin()
      const records = new Map<string, string>()
      for (const isReopened of [false, true]) {
        const id = isReopened ? 'v2' : 'v1'
        const first = await fakeHost(plugin, records)
        await first.manager.mount({ ...request, volumeId: id })
        plugin.fail(rpc, unknown, rpcFailure('UNAVAILABLE', 'unknown'))
        const expanding = first.reports.expand({ ...ref, volumeId: id, capacityRange, secretsRef: 'others' })
        expect(await failureOf(expanding)).to.equal(unknown)
        expect(first.manager.list().map(({ problem }) => problem)).to.include(unknown.message)
        if (isReopened) await first.close()
        const host = isReopened ? await fakeHost(plugin, records) : first
        for (const _ of ['fails again', 'is done']) {
          host.manager.pluginReady('disk')
          await settled()
        }
        expect(plugin.nodeSizes.get(id)).to.equal(capacityRange.requiredBytes)
        const calls = plugin.calls.filter((call) => call.rpc === rpc && call.volumeId === id)
        expect(calls.map(({ request: { secrets } }) => secrets)).to.deep.equal(
          Array.from({ length: 3 }, () => ({ password: 'of others' })),
        )
        expect(records.get(`volume/disk/default/${id}`)).not.to.contain('growth')
        expect(host.manager.list().map(({ problem }) => problem)).to.deep.equal(
          host.manager.list().map(() => undefined),
        )
        expect(
          host.events.filter(({ volumeId }) => volumeId === id).map(({ kind, message }) => `${kind} ${message}`),
        ).to.include('done grown, as it was to be')
        await host.close()
      }
      expect(plugin.offences).to.deep.equal([])
    })

  for (const [what, code] of [
    ['in its storage', 'ControllerExpandVolume'],
    ['on the node', 'NodeExpandVolume'],
  ] as const)
    it(`is known where it has failed for good ${what}, be it the first time or again`, async () => {
      const plugin = new FakePlugin()
      const host = await fakeHost(plugin)
      await host.manager.mount(request)
      const failure = rpcFailure('OUT_OF_RANGE')
      plugin.fail(code, failure, unknown, failure)
      expect(await failureOf(host.reports.expand({ ...ref, capacityRange }))).to.equal(failure)
      expect(growthOf(host)).to.equal(undefined)
      expect(host.manager.list()[0]).to.not.have.property('problem')
      await failureOf(host.reports.expand({ ...ref, capacityRange }))
      host.manager.pluginReady('disk')
      await settled()
      expect(growthOf(host)).to.equal(undefined)
      expect(host.events.at(-1)).to.include({ kind: 'failed', message: failure.message })
      await host.close()
    })

  it('waits until the volume is mounted, and ends with its last use', async () => {
    const plugin = new FakePlugin()
    const host = await fakeHost(plugin)
    const { path } = await host.manager.mount(request)
    plugin.fail('NodeExpandVolume', unknown)
    await failureOf(host.reports.expand({ ...ref, capacityRange }))
    plugin.lose(path)
    plugin.calls.length = 0
    host.manager.pluginReady('disk')
    await settled()
    expect(plugin.names).to.deep.equal([])
    expect(host.manager.list()[0]?.problem).to.equal(`it is to grow, which has to wait until ${path} is mounted`)
    await host.manager.mount(request)
    host.manager.pluginReady('disk')
    await settled()
    expect(plugin.nodeSizes.get('v1')).to.equal(capacityRange.requiredBytes)

    plugin.fail('ControllerExpandVolume', unknown)
    await failureOf(host.reports.expand({ ...ref, capacityRange }))
    await host.manager.unmount(request)
    expect([host.manager.list(), host.records.size]).to.deep.equal([[], 0])
    await host.close()
  })

  it('is not begun where it cannot be put on record, nor where there are no secrets for it', async () => {
    const plugin = new FakePlugin()
    const store = memoryStore()
    let isFull = false
    const host = await fakeHost(plugin, new Map(), {
      store: {
        read: store.read,
        save: async (batch) => {
          if (isFull) throw new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
          return store.save(batch)
        },
      },
      secrets: async ({ secretsRef }) => {
        if (secretsRef === 'none') throw new PlugstreamError('ERR_OPTION_INVALID', 'none of that name')
        return {}
      },
    })
    await host.manager.mount(request)
    plugin.calls.length = 0
    await failureOf(host.reports.expand({ ...ref, capacityRange, secretsRef: 'none' }), 'ERR_OPTION_INVALID')
    isFull = true
    await failureOf(host.reports.expand({ ...ref, capacityRange }), 'ERR_STORE_WRITE')
    isFull = false
    host.manager.pluginReady('disk')
    await settled()
    expect(plugin.names).to.deep.equal([])
    await host.close()
  })

  it('is answered where it was made, also where the store fails then; its record goes when it can', async () => {
    const plugin = new FakePlugin()
    const records = new Map<string, string>()
    const store = memoryStore(records)
    let isFull = false
    const save: typeof store.save = async (batch) => {
      if (isFull) throw new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
      return store.save(batch)
    }
    const host = await fakeHost(plugin, records, { store: { read: store.read, save } })
    await host.manager.mount(request)
    plugin.fail('NodeExpandVolume', () => void (isFull = true))
    expect(await host.reports.expand({ ...ref, capacityRange })).to.deep.equal({
      capacityBytes: capacityRange.requiredBytes,
    })
    expect(growthOf(host)).not.to.equal(undefined)
    isFull = false
    host.manager.pluginReady('disk')
    await settled()
    expect(growthOf(host)).to.equal(undefined)
    expect(plugin.names.filter((rpc) => rpc === 'NodeExpandVolume')).to.have.length(1)
    await host.close()
  })
})

describe('what is asked about a volume', () => {
  const ways: [what: string, ask: (reports: VolumeReports, ref: VolumeRef) => Promise<unknown>][] = [
    ['usage', (reports, ref) => reports.stats(ref)],
    ['health', (reports, ref) => reports.health(ref)],
    ['growth', (reports, ref) => reports.expand({ ...ref, capacityRange })],
  ]
  for (const [what, ask] of ways)
    it(
      `is refused where this host has not mounted it: its ${what}`,
      withVolume(async (plugin, reports, volume) => {
        for (const other of [{ volumeId: 'v2' }, { namespace: 'other' }, { plugin: 'other' }])
          expect(await refused(() => ask(reports, { ...ref, ...other }))).to.equal('volumeId')
        await volume.unmount()
        expect(await refused(() => ask(reports, ref))).to.equal('volumeId')
        expect(plugin.asks).to.deep.equal([])
      }),
    )

  it(
    'is rejected, not thrown, where it is about nothing',
    withVolume(async (_plugin, reports) => {
      for (const asked of [
        reports.stats(undefined as never),
        reports.health(null as never),
        reports.expand(7 as never),
      ])
        expect((await failureOf(asked, 'ERR_OPTION_INVALID')).details).to.deep.equal({ field: 'volume' })
    }),
  )

  it(
    'has a time and a signal',
    withVolume(async (plugin, reports) => {
      plugin.answers = { nodeGetVolumeStats: () => new Promise(() => undefined) }
      expect(await refused(() => reports.stats(ref, { timeoutMs: 0 }))).to.equal('timeoutMs')
      const end = gate()
      plugin.answers = { nodeGetVolumeStats: () => end.opened }
      const stop = new AbortController()
      const asking = failureOf(reports.stats(ref, { signal: stop.signal }), 'ERR_ABORTED')
      stop.abort()
      const { message } = await asking
      expect(message).to.contain('asking for the usage of volume "v1" of plugin "disk": aborted')
      end.open()
    }),
  )
})
