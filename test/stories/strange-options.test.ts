import { join } from 'node:path'
import { expect } from 'chai'
import { EMPTY, NEVER, Subject } from 'rxjs'
import { csiClient, type CsiClient } from '../../lib/csi/client.js'
import { csiKind } from '../../lib/csi/kind.js'
import { serveCsi } from '../../lib/csi/server.js'
import { PlugstreamError } from '../../lib/errors.js'
import { keyvStore } from '../../lib/store/keyv-store.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import { sqliteStore } from '../../lib/store/sqlite-store.js'
import { processDriver } from '../../lib/task/process-driver.js'
import { dockerDriver } from '../../streams/docker.js'
import { openHost } from '../../streams/host.js'
import type { HostInit } from '../../streams/plugin-host.js'
import { poll } from '../../streams/operators/poll.js'
import { outlet } from '../../streams/outlets.js'
import { Registry } from '../../streams/registry.js'
import { runTasks } from '../../streams/run-tasks.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { scriptedPluginCommand, spawnScriptedPlugin } from '../testing/spawn-scripted-plugin.js'
import { inDirectory } from './support.js'
import { mountAccess, withVolumes, type VolumeStory } from './volumes-support.js'

/** What a door makes of what it is given; it may throw in the call itself. */
async function refusal(door: () => unknown): Promise<PlugstreamError> {
  try {
    await door()
  } catch (failure) {
    expect(failure).to.be.instanceOf(PlugstreamError).and.include({ code: 'ERR_OPTION_INVALID' })
    return failure as PlugstreamError
  }
  throw new Error('nothing was refused')
}

/** A door takes anything, as one is used from JavaScript. */
type Door = [name: string, door: (given: never) => unknown]

const handlers = { GetPluginInfo: () => ({}), GetPluginCapabilities: () => ({}), Probe: () => ({}) }

/** The doors that take an object which has to be there; `given` makes one of them whole. */
const objects: readonly (readonly [...Door, whole: object, name?: string])[] = [
  ['openHost', openHost, { stateDir: '/nowhere', task$: NEVER }],
  ['Registry.open', (init) => Registry.open(init), { store: memoryStore() }],
  ['serveCsi', serveCsi, { socketPath: '/nowhere/csi.sock', identity: handlers }],
  ['csiClient', csiClient, { pick: () => undefined }],
  ['sqliteStore', sqliteStore, { file: '/nowhere/state.sqlite' }],
  ['dockerDriver', dockerDriver, { hostId: 'here' }],
  ['outlet', outlet, { snapshot: () => 1, change$: NEVER }],
  ['poll', (init) => poll(() => EMPTY, init), { pauseMs: () => 1 }],
  ['scriptedPlugin', scriptedPlugin, { socketPath: '/nowhere/csi.sock' }],
  ['spawnScriptedPlugin', spawnScriptedPlugin, { socketPath: '/nowhere/csi.sock' }],
]

const nothing = { nodeId: undefined, kinds: undefined, store: undefined, dispensers: undefined, secrets: undefined }
const registryNothing = { dispensers: undefined, types: undefined, closeTimeoutMs: undefined, now: undefined }
const ports = { prepare: () => NEVER, restart$: NEVER }

/** The doors whose object may be left out. */
const optional: readonly Door[] = [
  ['csiKind', csiKind],
  ['processDriver', processDriver],
  ['runTasks', (init) => runTasks(EMPTY, processDriver(), ports, init)],
]

const use = { plugin: 'disk', volumeId: 'v', allocId: 'a' }
const volume = { plugin: 'disk', volumeId: 'v' }

/** The calls of a host that take options, which may be left out. */
const calls = ({ host, volumes }: VolumeStory): readonly Door[] => [
  ['waitFor', (options) => host.waitFor('csi-node', 'disk', options)],
  ['registry.waitFor', (options) => host.registry.waitFor('csi-node', 'disk', options)],
  ['mount', (options) => volumes.mount(use, options)],
  ['unmount', (options) => volumes.unmount(use, options)],
  ['stats', (options) => volumes.stats(volume, options)],
  ['health', (options) => volumes.health(volume, options)],
  ['expand', (options) => volumes.expand({ ...volume, capacityRange: { requiredBytes: 1n } }, options)],
  ['create', (options) => volumes.create({ plugin: 'disk', name: 'n', volumeCapabilities: [mountAccess] }, options)],
  ['delete', (options) => volumes.delete(volume, options)],
]

describe('an object of options', () => {
  for (const [name, door, whole] of objects) {
    it(`of ${name} is refused where it is none, and for a field that there is not`, async () => {
      for (const given of [undefined, null, 'text', []])
        expect((await refusal(() => door(given as never))).details).to.deep.equal({ field: 'init' })
      const { details, message } = await refusal(() => door({ ...whole, secret: 'hunter2' } as never))
      expect(details).to.deep.equal({ field: 'secret' })
      expect(message)
        .to.match(/^secret is no field; there are \w+/)
        .and.not.include('hunter2')
      for (const field of Object.keys(whole)) expect(message).to.include(field)
    })
  }

  for (const [name, door] of optional) {
    it(`of ${name} is refused where it is null, and for a field that there is not`, async () => {
      expect((await refusal(() => door(null as never))).details).to.deep.equal({ field: 'init' })
      expect((await refusal(() => door({ secret: 1 } as never))).details).to.deep.equal({ field: 'secret' })
      door(undefined as never)
    })
  }

  it('of a call of a host is refused where it is null, and for a field that there is not', () =>
    inDirectory((directory) =>
      withVolumes(directory, {}, async (story) => {
        for (const [name, call] of calls(story)) {
          expect((await refusal(() => call(null as never))).details, name).to.deep.equal({ field: 'options' })
          const { details, message } = await refusal(() => call({ timeout: 5 } as never))
          expect(details, name).to.deep.equal({ field: 'timeout' })
          expect(message, name).to.include('signal, timeoutMs')
        }
      }),
    ))

  it('of a call of a client is refused where it is null, and for a field that there is not', async () => {
    const client = csiClient({ pick: () => expect.fail('it was made') })
    const channel = csiKind().open('/nowhere/csi.sock')
    const calls: readonly Door[] = [
      ['nodeGetInfo', (options) => client.nodeGetInfo({}, options)],
      ['allVolumes', (options) => client.allVolumes({}, options)[Symbol.asyncIterator]().next()],
      [
        'getMetadataDelta',
        (options) =>
          client
            .getMetadataDelta({} as never, options)
            [Symbol.asyncIterator]()
            .next(),
      ],
      ['call', (options) => channel.call('NodeGetInfo', {}, options)],
      ['stream', (options) => channel.stream('GetMetadataDelta', {}, options).next()],
    ]
    for (const [name, call] of calls) {
      expect((await refusal(() => call(null as never))).details, name).to.deep.equal({ field: 'options' })
      expect((await refusal(() => call({ timeout: 5 } as never))).details, name).to.deep.equal({ field: 'timeout' })
    }
    await channel.close()
  })

  it('of a host says where secrets belong, and what a request of a controller takes', () =>
    inDirectory((directory) =>
      withVolumes(directory, {}, async ({ volumes, events }) => {
        const secrets = { password: 'hunter2' }
        const request = { plugin: 'disk', name: 'n', volumeCapabilities: [mountAccess] }
        const doors = [
          () => volumes.mount({ ...use, secrets } as never),
          () => volumes.unmount({ ...use, secrets } as never),
          () => volumes.expand({ ...volume, secrets, capacityRange: { requiredBytes: 1n } } as never),
          () => volumes.create({ ...request, secrets } as never),
        ]
        for (const door of doors) {
          const { details, message } = await refusal(door)
          expect(details).to.deep.equal({ field: 'secrets' })
          expect(message).to.include('secretsRef').and.include('openHost({ secrets })').and.not.include('hunter2')
        }
        const { message } = await refusal(() => volumes.create({ ...request, size: 1n } as never))
        expect(message)
          .to.match(/^size is no field; there are plugin, name, .*, secretsRef$/)
          .and.not.include('secrets,')
        expect(volumes.list()).to.deep.equal([])
        expect(events.all).to.deep.equal([])
      }),
    ))

  it('names a volume by what is told of it just as well, but not by a field that is misspelt', () =>
    inDirectory((directory) =>
      withVolumes(directory, {}, async ({ volumes }) => {
        const mount = {
          ...use,
          secretsRef: 's',
          volumeContext: {},
          path: '/x',
          phase: 'mounted',
          claims: [],
          kind: 'kept',
        }
        await volumes.unmount(mount)
        expect((await refusal(() => volumes.stats(mount))).details).to.deep.equal({ field: 'volumeId' })
        for (const door of [volumes.unmount, volumes.stats, volumes.health, volumes.mount])
          expect((await refusal(() => door({ ...use, mountname: 'x' } as never))).details['field']).to.equal(
            'mountname',
          )
      }),
    ))

  it('may have every field that may be left out as undefined, as one who passes options on has it', () =>
    inDirectory((directory) => {
      const none = { signal: undefined, timeoutMs: undefined }
      const init: Partial<HostInit> = { ...nothing, timing: { heartbeatMs: undefined } }
      return withVolumes(join(directory, 'host'), init, async ({ host, volumes }) => {
        const socketPath = join(directory, 'csi.sock')
        const script = { ready: undefined, replies: undefined, services: undefined }
        await using plugin = await scriptedPlugin({ socketPath, script, onCall: undefined, onEnd: undefined })
        await plugin.change({ replies: undefined })
        await using _other = await Registry.open({ store: memoryStore(), ...registryNothing })
        const registration = { type: 'csi-node', name: 'disk', allocId: 'd1', connection: { socketPath } }
        await host.registry.register({ ...registration, version: undefined, options: undefined })
        await host.waitFor('csi-node', 'disk', { ...none, healthy: undefined })
        await host.waitFor('csi-node', 'disk', { ...none, healthy: true })
        const { nodeId } = await host
          .client<CsiClient>('csi-node', 'disk')
          .nodeGetInfo({}, { ...none, force: undefined })
        expect(nodeId).to.equal('node-1')
        const request = { ...use, namespace: undefined, access: undefined, mountName: undefined, secretsRef: undefined }
        const aborted = { ...none, signal: AbortSignal.abort() }
        const mounting = volumes.mount({ ...request, volumeContext: undefined, publishContext: undefined }, aborted)
        expect(await mounting.catch((failure: unknown) => failure)).to.include({ code: 'ERR_ABORTED' })
        await volumes.unmount(request, none)
        runTasks(EMPTY, processDriver({ logDir: undefined, maxLogBytes: undefined }), ports, { onClose: undefined })
      })
    }))

  it('of a server says what of it is no service', async () => {
    const socketPath = '/nowhere/csi.sock'
    const rows: readonly (readonly [object, field: string])[] = [
      [{ socketPath }, 'identity'],
      [{ socketPath, identity: null }, 'identity'],
      [{ socketPath, identity: {} }, 'identity.GetPluginInfo'],
      [{ socketPath, identity: handlers, node: null }, 'node'],
      [{ socketPath, identity: handlers, controller: 'all' }, 'controller'],
      [{ socketPath, endpoint: socketPath, identity: handlers }, 'endpoint'],
      [{ identity: handlers }, 'endpoint'],
    ]
    for (const [init, field] of rows)
      expect((await refusal(() => serveCsi(init as never))).details).to.deep.equal({ field })
  })

  it('of a scripted plugin is refused for what the script cannot say, also later', () =>
    inDirectory(async (directory) => {
      const socketPath = join(directory, 'csi.sock')
      const rows: readonly (readonly [object | null, field: string])[] = [
        [null, 'script'],
        [{ reday: false }, 'reday'],
        [{ capabilities: { nodes: [] } }, 'capabilities.nodes'],
        [{ replies: { NodeStageVolum: [] } }, 'rpc'],
        [{ replies: { NodeStageVolume: { status: 'ABORTED' } } }, 'replies.NodeStageVolume'],
        [{ replies: { NodeStageVolume: [{}, { code: 'ABORTED' }] } }, 'replies.NodeStageVolume[1].code'],
      ]
      await using plugin = await scriptedPlugin({ socketPath })
      for (const [script, field] of rows) {
        const doors = [
          () => scriptedPlugin({ socketPath, script } as never),
          () => spawnScriptedPlugin({ socketPath, script } as never),
          () => scriptedPluginCommand(script as never),
          () => plugin.change(script as never),
          () => plugin.rebind(script as never),
        ]
        for (const door of doors) expect((await refusal(door)).details).to.deep.equal({ field })
      }
      expect((await refusal(() => plugin.reply('NodeStageVolume', { code: 1 } as never))).details['field']).to.match(
        /code$/,
      )
      expect((await refusal(() => plugin.reply('Nonsense' as never))).details['field']).to.equal('rpc')
      expect((await refusal(() => plugin.waitForCall('Nonsense' as never))).details['field']).to.equal('rpc')
    }))

  it('of a runner and of stores is refused for a value that it cannot have', async () => {
    const input$ = new Subject<never>()
    const running = await refusal(() => runTasks(input$, processDriver(), ports, { onClose: 'kepp' as never }))
    expect(running.details).to.deep.equal({ field: 'onClose' })
    expect((await refusal(() => sqliteStore({ file: '' }))).details).to.deep.equal({ field: 'file' })
    for (const keyv of [undefined, null, 5])
      expect((await refusal(() => keyvStore(keyv as never))).details).to.deep.equal({ field: 'keyv' })
  })

  it('of a controller is refused where it is no plain data', () =>
    inDirectory((directory) =>
      withVolumes(directory, {}, async ({ volumes }) => {
        const parameters = new Proxy({ kind: 'ssd' }, {})
        const request = { plugin: 'disk', name: 'n', volumeCapabilities: [mountAccess], parameters }
        expect((await refusal(() => volumes.create(request))).details).to.deep.equal({ field: 'parameters' })
        const access = new Proxy({ ...mountAccess, mountFlags: new Proxy([], {}) }, {})
        expect((await refusal(() => volumes.mount({ ...use, access }))).details).to.deep.equal({ field: 'access' })
      }),
    ))
})
