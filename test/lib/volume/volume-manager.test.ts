import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import type { MountRequest, VolumeAccess } from '../../../lib/volume/volume.js'
import { fakeHost, FakePlugin, fakePorts, hostRoot, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { gate } from '../../fakes/fake-store.js'
import { Clock } from './support.js'

const request = (over: Partial<MountRequest> = {}): MountRequest => ({
  plugin: 'disk',
  volumeId: 'v1',
  allocId: 'a',
  ...over,
})
const flags = (...mountFlags: string[]): VolumeAccess => ({
  kind: 'mount',
  accessMode: 'SINGLE_NODE_WRITER',
  mountFlags,
})

/** Tells a story with a plugin, and that it kept to the specification. */
const withFake =
  (tell: (plugin: FakePlugin, host: FakeHost, again: () => Promise<FakeHost>) => Promise<void>) =>
  async (): Promise<void> => {
    const plugin = new FakePlugin()
    const hosts = [await fakeHost(plugin)]
    const [host] = hosts as [FakeHost]
    const again = async (): Promise<FakeHost> => {
      await hosts.at(-1)?.close()
      hosts.push(await fakeHost(plugin, host.records))
      return hosts.at(-1) as FakeHost
    }
    try {
      await tell(plugin, host, again)
      expect(plugin.offences).to.deep.equal([])
    } finally {
      for (const one of hosts) await one.close()
    }
  }

/** The failure of what must fail. */
async function failureOf(work: Promise<unknown>): Promise<PlugstreamError> {
  try {
    await work
  } catch (failure) {
    expect(failure).to.be.instanceOf(PlugstreamError)
    return failure as PlugstreamError
  }
  throw new Error('it did not fail')
}

/** Resolves when something is so that was not; looked at after every turn of the event loop. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

describe('the volume manager', () => {
  it(
    'attaches, stages and publishes, and undoes all of it in reverse',
    withFake(async (plugin, { manager, records }) => {
      const volume = await manager.mount(request())
      expect(volume.path).to.equal(`${hostRoot}/per-alloc/a/default/v1/rw-mount-single-node-writer`)
      expect(plugin.published.get(volume.path)?.volumeId).to.equal('v1')
      await volume.unmount()
      expect(plugin.names).to.deep.equal([
        'NodeGetInfo',
        'ControllerPublishVolume',
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
        'ControllerUnpublishVolume',
      ])
      expect(plugin.calls.find(({ rpc }) => rpc === 'NodePublishVolume')?.request['publishContext']).to.deep.equal({
        device: '/dev/v1',
      })
      expect(manager.list()).to.deep.equal([])
      expect([...records.keys()]).to.deep.equal([])
    }),
  )

  it(
    'unmounts what goes out of scope',
    withFake(async (plugin, { manager }) => {
      {
        await using volume = await manager.mount(request())
        expect(plugin.published.has(volume.path)).to.equal(true)
      }
      expect(plugin.published.size).to.equal(0)
    }),
  )

  it(
    'leaves out what the plugin does not have',
    withFake(async (plugin, { manager }) => {
      plugin.capabilities = new Set()
      const volume = await manager.mount(request())
      expect(plugin.calls.map(({ request }) => request['stagingTargetPath'])).to.deep.equal([undefined])
      await volume.unmount()
      expect(plugin.names).to.deep.equal(['NodePublishVolume', 'NodeUnpublishVolume'])
      expect(manager.list()).to.deep.equal([])
    }),
  )

  it(
    'does not attach what somebody else has attached',
    withFake(async (plugin, { manager }) => {
      const volume = await manager.mount(request({ publishContext: { lun: '7' } }))
      await volume.unmount()
      expect(plugin.names).to.deep.equal([
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
      ])
      expect(plugin.calls[0]?.request['publishContext']).to.deep.equal({ lun: '7' })
    }),
  )

  it(
    'stages once for five allocs at the same time, and never has two calls for a volume in flight',
    withFake(async (plugin, { manager }) => {
      const allocs = ['a', 'b', 'c', 'd', 'e']
      const volumes = await Promise.all(allocs.map((allocId) => manager.mount(request({ allocId }))))
      expect(plugin.names.filter((name) => name === 'NodeStageVolume')).to.have.length(1)
      expect(plugin.names.filter((name) => name === 'NodePublishVolume')).to.have.length(5)
      await Promise.all(volumes.map((volume) => volume.unmount()))
      expect(plugin.names.filter((name) => name === 'NodeUnstageVolume')).to.have.length(1)
      expect(plugin.staged.size).to.equal(0)
    }),
  )

  it(
    'compares mount options by value: what A stops using stays staged for B',
    withFake(async (plugin, { manager }) => {
      const a = await manager.mount(request({ allocId: 'a', access: flags('noatime') }))
      const b = await manager.mount(request({ allocId: 'b', access: flags('noatime') }))
      await a.unmount()
      expect([plugin.staged.size, plugin.published.size]).to.deep.equal([1, 1])
      await b.unmount()
      expect([plugin.staged.size, plugin.published.size]).to.deep.equal([0, 0])
    }),
  )

  for (const [where, kind] of [
    ['where a volume is to be staged', 'staging'],
    ['where it is to be published', 'per-alloc'],
  ] as const)
    it(`refuses a symbolic link ${where} that is there before its first call, and lets the plugin have its own`, async () => {
      const plugin = new FakePlugin()
      const links = new Set<string>()
      const { files } = fakePorts(plugin, new Map())
      const isLink = async (path: string): Promise<boolean> => links.has(path)
      const records = new Map<string, string>()
      const over = { files: { ...files, isLink } }
      const host = await fakeHost(plugin, records, over)
      const { path } = await host.manager.mount(request())
      const places = [path, ...plugin.staged.keys()]
      await host.manager.unmount(request())
      const place = places.find((one) => one.includes(`/${kind}/`)) as string

      links.add(place)
      const before = plugin.calls.length
      const failure = await failureOf(host.manager.mount(request()))
      expect([failure.code, failure.details['path']]).to.deep.equal(['ERR_MOUNT', place])
      expect([host.manager.list(), records.size]).to.deep.equal([[], 0])
      expect(plugin.names.slice(before).filter((rpc) => rpc !== 'NodeGetInfo')).to.deep.equal([])

      links.clear()
      plugin.fail('NodePublishVolume', () => {
        links.add(place) // made by the plugin
        throw rpcFailure('UNAVAILABLE', 'unknown')
      })
      plugin.fail('NodeUnpublishVolume', rpcFailure('INTERNAL'))
      await failureOf(host.manager.mount(request()))
      expect(host.manager.list()).to.have.length(1)
      expect((await host.manager.mount(request())).path).to.equal(path)
      await host.close()
      const reopened = await fakeHost(plugin, records, over)
      expect((await reopened.manager.mount(request())).path).to.equal(path)
      await reopened.close()
    })

  it('removes the directory of a namespace with its last volume, and only with that', async () => {
    const plugin = new FakePlugin()
    const removed: string[] = []
    const { files } = fakePorts(plugin, new Map())
    const removeIfEmpty = (path: string): void => void removed.push(path)
    const host = await fakeHost(plugin, new Map(), { files: { ...files, removeIfEmpty } })
    const isRemoved = (namespace: string): boolean => removed.includes(`${hostRoot}/staging/${namespace}`)
    for (const [volumeId, namespace] of [
      ['v1', 'default'],
      ['v2', 'default'],
      ['v1', 'other'],
    ] as const)
      await host.manager.mount(request({ volumeId, namespace }))
    await host.manager.unmount(request({ volumeId: 'v1' }))
    expect([isRemoved('default'), isRemoved('other')]).to.deep.equal([false, false])
    await host.manager.unmount(request({ volumeId: 'v1', namespace: 'other' }))
    expect([isRemoved('default'), isRemoved('other')]).to.deep.equal([false, true])
    await host.manager.unmount(request({ volumeId: 'v2' }))
    expect(isRemoved('default')).to.equal(true)
    await host.close()
  })

  it('removes the directories of an alloc whose mount could not even be put on record', async () => {
    const plugin = new FakePlugin()
    const removed: string[] = []
    const { files, store } = fakePorts(plugin, new Map())
    const removeIfEmpty = (path: string): void => void removed.push(path)
    const save = (): Promise<never> => Promise.reject(new PlugstreamError('ERR_STORE_WRITE', 'the disk is full'))
    const over = { files: { ...files, removeIfEmpty }, store: { ...store, save } }
    const host = await fakeHost(plugin, new Map(), over)
    expect((await failureOf(host.manager.mount(request()))).code).to.equal('ERR_STORE_WRITE')
    const alloc = `${hostRoot}/per-alloc/a`
    expect(removed).to.deep.equal([`${alloc}/default/v1`, `${alloc}/default`, alloc])
    await host.close()
  })

  for (const rpc of ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'])
    it(`tells that the node is full where ${rpc} says so, when it is mounted and when it is settled`, async () => {
      const plugin = new FakePlugin()
      const full: string[] = []
      const records = new Map<string, string>()
      const isFull = (name: string): void => void full.push(name)
      const host = await fakeHost(plugin, records, { isFull })
      plugin.fail(rpc, rpcFailure('INTERNAL'), rpcFailure('RESOURCE_EXHAUSTED', 'unknown'))
      await failureOf(host.manager.mount(request()))
      expect(full).to.deep.equal([])
      await failureOf(host.manager.mount(request()))
      expect(full).to.deep.equal(['disk'])
      await host.manager.mount(request())
      await host.close()
      const reopened = await fakeHost(plugin, records, { isFull })
      plugin.fail(rpc, rpcFailure('RESOURCE_EXHAUSTED', 'unknown'))
      reopened.manager.pluginReady('disk')
      await until(() => full.length === 2)
      await reopened.close()
    })

  for (const [how, mishap] of [
    ['fails', rpcFailure('INTERNAL')],
    [
      'is never answered',
      (_: unknown, _effect: unknown, signal?: AbortSignal) =>
        new Promise<void>((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason as Error))
        }),
    ],
  ] as const)
    it(`shows since when, how often and with what last, for as long as an unmount ${how}, and no longer`, async () => {
      using clock = new Clock()
      const plugin = new FakePlugin()
      const host = await fakeHost(plugin, new Map(), { now: () => Date.now() })
      const { path } = await host.manager.mount(request())
      plugin.fail('NodeUnpublishVolume', ...Array.from({ length: 5 }, () => mishap), rpcFailure('NOT_FOUND'))
      await clock.pass(1_000)
      const unmounting = failureOf(host.manager.unmount(request(), { timeoutMs: 1_000 }))
      await clock.pass(1_000)
      await unmounting
      const shown = () => host.manager.list()[0]?.claims[0]
      const since = shown()?.failingSince
      expect(since).to.be.oneOf([1_000, 2_000])
      expect(shown()).to.include({ path, phase: 'unmounting' })
      for (let attempts = shown()?.attempts ?? 0; attempts < 6;) {
        await clock.pass(1_000)
        const now = shown()
        expect(now?.failingSince).to.equal(since)
        expect(now?.attempts).to.be.oneOf([attempts, attempts + 1])
        attempts = now?.attempts ?? 0
      }
      expect(shown()).to.include({ problem: 'failed: NOT_FOUND' })
      host.manager.pluginReady('disk')
      await until(() => host.manager.list().length === 0)
      await host.close()
    })

  for (const who of ['is settled', 'is mounted again'] as const)
    it(`attaches a volume that was mounted before its controller was there, and is not there when it ${who}`, async () => {
      const plugin = new FakePlugin()
      const records = new Map<string, string>()
      const alone = await fakeHost(plugin, records, { isRegistered: (type) => type === 'csi-node' })
      await alone.manager.mount(request())
      expect(plugin.names).to.not.include('ControllerPublishVolume')
      await alone.close()
      plugin.always = ({ rpc, volumeId }) => {
        if (rpc === 'NodeStageVolume' && !plugin.attached.has(volumeId)) throw rpcFailure('FAILED_PRECONDITION')
      }
      const { manager, close } = await fakeHost(plugin, records)
      if (who === 'is settled') manager.pluginReady('disk')
      else await manager.mount(request())
      await until(() => manager.list()[0]?.claims[0]?.phase === 'mounted')
      expect(manager.list()[0]).to.include({ attachedTo: 'node-1', staged: true })
      expect(
        plugin.calls.filter(({ rpc }) => rpc === 'NodeStageVolume').at(-1)?.request['publishContext'],
      ).to.deep.equal({
        device: '/dev/v1',
      })
      await manager.unmount(request())
      expect([plugin.attached.size, records.size]).to.deep.equal([0, 0])
      await close()
    })

  it(
    'leaves a volume as it is that works though it was mounted before its controller was there',
    withFake(async (plugin, { manager, records }) => {
      const alone = await fakeHost(plugin, records, { isRegistered: (type) => type === 'csi-node' })
      await alone.manager.mount(request({ volumeId: 'v2' }))
      await alone.close()
      const reopened = await fakeHost(plugin, records)
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[0]?.phase === 'mounted')
      await reopened.manager.mount(request({ volumeId: 'v2', allocId: 'b' }))
      expect(plugin.names).to.not.include('ControllerPublishVolume').and.not.include('NodeGetInfo')
      for (const allocId of ['a', 'b']) await reopened.manager.unmount(request({ volumeId: 'v2', allocId }))
      expect(plugin.names).to.not.include('ControllerUnpublishVolume')
      await reopened.close()
      expect(manager.list()).to.deep.equal([])
    }),
  )

  it(
    'takes a volume with a publish context for attached by who gave it, whatever goes wrong with it',
    withFake(async (plugin, { records, manager }, again) => {
      await manager.mount(request({ publishContext: { lun: '7' } }))
      const reopened = await again()
      plugin.fail('NodeStageVolume', rpcFailure('FAILED_PRECONDITION'))
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[0]?.problem !== undefined)
      await reopened.manager.mount(request())
      expect(plugin.names).to.not.include('ControllerPublishVolume')
      expect(records.size).to.equal(1)
    }),
  )

  it(
    'refuses another kind of use of a volume that is staged, since there is one staging path a volume',
    withFake(async (plugin, { manager }) => {
      await manager.mount(request({ access: flags('noatime') }))
      const failure = await failureOf(manager.mount(request({ allocId: 'b', access: flags('discard') })))
      expect(failure.code).to.equal('ERR_VOLUME_BUSY')
      expect(failure.message).to.not.include('noatime')
      expect(plugin.published.size).to.equal(1)
    }),
  )

  it(
    'gives a volume read-only and read-write at once, from one stage',
    withFake(async (plugin, { manager }) => {
      const access = { kind: 'mount', accessMode: 'MULTI_NODE_MULTI_WRITER' } as const
      const rw = await manager.mount(request({ access }))
      const ro = await manager.mount(request({ access: { ...access, readonly: true } }))
      expect(ro.path).to.not.equal(rw.path)
      expect([...plugin.published.values()].map(({ readonly }) => readonly)).to.deep.equal([false, true])
      await rw.unmount()
      expect([...plugin.published.keys()]).to.deep.equal([ro.path])
    }),
  )

  it(
    'gives block and mount at once where the plugin does not stage',
    withFake(async (plugin, { manager }) => {
      plugin.capabilities = new Set()
      const mount = await manager.mount(request())
      const block = await manager.mount(request({ access: { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' } }))
      expect(new Set([mount.path, block.path]).size).to.equal(2)
    }),
  )

  it(
    'mounts a volume twice in one alloc under two names, and once under one',
    withFake(async (plugin, { manager }) => {
      const first = await manager.mount(request({ mountName: 'logs' }))
      const second = await manager.mount(request({ mountName: 'data' }))
      const same = await manager.mount(request({ mountName: 'data' }))
      expect(same.path).to.equal(second.path)
      await first.unmount()
      expect([...plugin.published.keys()]).to.deep.equal([second.path])
    }),
  )

  it(
    'keeps the same id in two namespaces apart, one after the other',
    withFake(async (plugin, { manager }) => {
      const [one, other] = await Promise.all(['one', 'other'].map((namespace) => manager.mount(request({ namespace }))))
      expect(plugin.staged.size).to.equal(2)
      await one?.unmount()
      expect([...plugin.published.keys()]).to.deep.equal([other?.path])
      expect(plugin.staged.size).to.equal(1)
    }),
  )

  it(
    'does not let a volume that is stuck hold up another',
    withFake(async (plugin, { manager }) => {
      const stuck = gate()
      plugin.fail('NodeStageVolume', () => stuck.opened)
      const waiting = manager.mount(request())
      await manager.mount(request({ volumeId: 'v2' }))
      stuck.open()
      await waiting
    }),
  )

  it(
    'rejects who gives up waiting for his turn, with nothing done for him',
    withFake(async (plugin, { manager }) => {
      const stuck = gate()
      plugin.fail('NodeStageVolume', () => stuck.opened)
      const first = manager.mount(request())
      const abort = new AbortController()
      const second = failureOf(manager.mount(request({ allocId: 'b' }), { signal: abort.signal }))
      const third = failureOf(manager.unmount(request({ allocId: 'c' }), { timeoutMs: 1 }))
      abort.abort()
      expect((await second).code).to.equal('ERR_ABORTED')
      expect((await third).code).to.equal('ERR_TIMEOUT')
      stuck.open()
      await first
      expect(plugin.published.size).to.equal(1)
    }),
  )

  it(
    'undoes a mount that its caller gives up while it is under way',
    withFake(async (plugin, { manager, records }) => {
      const stuck = gate()
      plugin.fail('NodePublishVolume', (_, effect) => stuck.opened.then(effect))
      const abort = new AbortController()
      const failure = failureOf(manager.mount(request(), { signal: abort.signal }))
      await until(() => plugin.names.includes('NodePublishVolume'))
      abort.abort()
      expect((await failure).code).to.equal('ERR_ABORTED')
      stuck.open()
      await until(() => manager.list().length === 0)
      expect([plugin.staged.size, plugin.published.size, plugin.attached.size, records.size]).to.deep.equal([
        0, 0, 0, 0,
      ])
    }),
  )

  for (const rpc of ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'])
    for (const when of ['before', 'after'] as const)
      it(
        `leaves nothing of a mount whose ${rpc} fails ${when} its effect`,
        withFake(async (plugin, { manager, records, events }) => {
          plugin.fail(rpc, (_, effect) => {
            if (when === 'after') effect()
            throw rpcFailure('INTERNAL', 'unknown')
          })
          const failure = await failureOf(manager.mount(request()))
          expect(failure.details['grpcCode']).to.equal('INTERNAL')
          expect([plugin.staged.size, plugin.published.size, plugin.attached.size]).to.deep.equal([0, 0, 0])
          expect([manager.list(), [...records]]).to.deep.equal([[], []])
          expect(events.map(({ kind }) => kind)).to.deep.equal(['failed'])
        }),
      )

  it(
    'goes on to undo a mount that could not be undone when its plugin is back',
    withFake(async (plugin, { manager, records }) => {
      plugin.fail('NodePublishVolume', rpcFailure('INTERNAL'))
      plugin.fail('NodeUnpublishVolume', rpcFailure('UNAVAILABLE', 'unknown'))
      await failureOf(manager.mount(request()))
      expect(manager.list()[0]?.claims.map(({ phase, problem }) => [phase, problem])).to.deep.equal([
        ['unmounting', 'failed: UNAVAILABLE'],
      ])
      manager.pluginReady('disk')
      await until(() => manager.list().length === 0)
      expect([plugin.staged.size, records.size]).to.deep.equal([0, 0])
    }),
  )

  it(
    'keeps a claim over a restart: B holds what A lets go of afterwards',
    withFake(async (plugin, { manager }, again) => {
      await manager.mount(request({ allocId: 'a' }))
      await manager.mount(request({ allocId: 'b' }))
      const reopened = await again()
      expect(reopened.manager.list()[0]?.claims.map(({ phase }) => phase)).to.deep.equal(['uncertain', 'uncertain'])
      await reopened.manager.unmount(request({ allocId: 'a' }))
      expect([plugin.staged.size, plugin.published.size]).to.deep.equal([1, 1])
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[0]?.phase === 'mounted')
      expect(reopened.events.map(({ kind, allocId }) => [kind, allocId])).to.deep.equal([
        ['unmounted', 'a'],
        ['kept', 'b'],
      ])
    }),
  )

  it(
    'undoes and makes anew what a machine that was started again has lost, whatever the plugin thinks it has',
    withFake(async (plugin, { manager }, again) => {
      const { path } = await manager.mount(request())
      await manager.mount(request({ allocId: 'b' }))
      plugin.bootId = 'boot-2'
      const reopened = await again()
      plugin.calls.length = 0
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[1]?.phase === 'mounted')
      expect(plugin.names).to.deep.equal([
        'NodeUnpublishVolume',
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
        'ControllerPublishVolume',
        'NodeStageVolume',
        'NodePublishVolume',
        'NodePublishVolume',
      ])
      expect(plugin.published.has(path)).to.equal(true)
      const third = await again()
      plugin.calls.length = 0
      third.manager.pluginReady('disk')
      await until(() => third.manager.list()[0]?.claims[1]?.phase === 'mounted')
      expect(plugin.names).to.not.include('NodeUnpublishVolume')
    }),
  )

  it(
    'makes anew what a plugin confirms and the mount table does not have',
    withFake(async (plugin, { manager }, again) => {
      const { path } = await manager.mount(request())
      const reopened = await again()
      plugin.fail('NodePublishVolume', (_, effect) => {
        effect()
        plugin.published.delete(path)
      })
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[0]?.phase === 'mounted')
      expect(plugin.published.has(path)).to.equal(true)
    }),
  )

  it(
    'shows what stands in the way of a volume that cannot be confirmed, and keeps it',
    withFake(async (plugin, { manager }, again) => {
      await manager.mount(request())
      const reopened = await again()
      plugin.fail('NodeStageVolume', rpcFailure('NOT_FOUND'))
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list()[0]?.claims[0]?.problem !== undefined)
      expect(reopened.manager.list()[0]?.claims[0]).to.include({ phase: 'uncertain', problem: 'failed: NOT_FOUND' })
      await reopened.manager.mount(request())
      expect(reopened.manager.list()[0]?.claims[0]).to.include({ phase: 'mounted' }).and.not.have.property('problem')
    }),
  )

  it(
    'does not let go of what was held before, where a mount of it fails',
    withFake(async (plugin, { manager }, again) => {
      await manager.mount(request())
      const reopened = await again()
      plugin.fail('NodePublishVolume', rpcFailure('INTERNAL'))
      await failureOf(reopened.manager.mount(request()))
      expect(plugin.published.size).to.equal(1)
      expect(plugin.names).to.not.include('NodeUnpublishVolume')
    }),
  )

  it(
    'finishes over a restart what was being unmounted',
    withFake(async (plugin, { manager }, again) => {
      await manager.mount(request())
      plugin.fail('NodeUnstageVolume', rpcFailure('INTERNAL'))
      await failureOf(manager.unmount(request()))
      const reopened = await again()
      expect(reopened.manager.list()[0]?.claims.map(({ phase }) => phase)).to.deep.equal(['unmounting'])
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list().length === 0)
      expect([plugin.staged.size, plugin.attached.size, reopened.records.size]).to.deep.equal([0, 0, 0])
    }),
  )

  it(
    'takes NOT_FOUND for unmounted once the mount table agrees, and not before',
    withFake(async (plugin, { manager }) => {
      const volume = await manager.mount(request())
      plugin.fail('NodeUnpublishVolume', rpcFailure('NOT_FOUND'))
      expect((await failureOf(volume.unmount())).details['grpcCode']).to.equal('NOT_FOUND')
      plugin.published.clear()
      plugin.fail('NodeUnpublishVolume', rpcFailure('NOT_FOUND'))
      await volume.unmount()
      expect(manager.list()).to.deep.equal([])
    }),
  )

  it(
    'does not take NOT_FOUND for detached',
    withFake(async (plugin, { manager }) => {
      const volume = await manager.mount(request())
      plugin.fail('ControllerUnpublishVolume', rpcFailure('NOT_FOUND'))
      await failureOf(volume.unmount())
      expect(manager.list().map(({ problem }) => problem)).to.deep.equal(['failed: NOT_FOUND'])
      await volume.unmount()
      expect(plugin.names.slice(-1)).to.deep.equal(['ControllerUnpublishVolume'])
      expect(manager.list()).to.deep.equal([])
    }),
  )

  it(
    'refuses a place where something is mounted from elsewhere, and leaves it there',
    withFake(async (plugin, { manager }) => {
      const path = `${hostRoot}/per-alloc/a/default/v1/rw-mount-single-node-writer`
      plugin.foreign.add(path)
      const failure = await failureOf(manager.mount(request()))
      expect(failure.code).to.equal('ERR_MOUNT')
      expect(plugin.names).to.not.include('NodePublishVolume')
      expect(plugin.names).to.not.include('NodeUnpublishVolume')
      expect(plugin.staged.size).to.equal(0)
    }),
  )

  it(
    'finds an OK without effect',
    withFake(async (plugin, { manager }) => {
      plugin.fail('NodePublishVolume', (call, effect) => {
        effect()
        plugin.published.delete(call.path ?? '')
      })
      expect((await failureOf(manager.mount(request()))).code).to.equal('ERR_MOUNT')
      expect(plugin.staged.size).to.equal(0)
    }),
  )

  it(
    'finds a mount that is dead when the plugin is back, and makes it anew for who asks again',
    withFake(async (plugin, { manager, events }) => {
      const { path } = await manager.mount(request())
      plugin.pathStates.set(path, 'stale')
      manager.pluginReady('disk')
      await until(() => manager.list()[0]?.claims[0]?.phase === 'stale')
      expect(events.at(-1)).to.include({ kind: 'stale', allocId: 'a', volumeId: 'v1' })
      plugin.pathStates.clear()
      plugin.calls.length = 0
      await manager.mount(request())
      expect(plugin.names).to.deep.equal([
        'NodeUnpublishVolume',
        'NodeUnstageVolume',
        'NodeStageVolume',
        'NodePublishVolume',
      ])
      expect(manager.list()[0]?.claims[0]).to.include({ phase: 'mounted' })
    }),
  )

  it(
    'has neither secrets nor mount options in what it shows, tells and stores of secrets',
    withFake(async (plugin, host) => {
      await host.manager.mount(request({ secretsRef: 'vault', access: flags('user=x') }))
      expect(plugin.calls.at(-1)?.request['secrets']).to.deep.equal({ password: 'of vault' })
      expect(JSON.stringify([...host.records])).to.not.include('of vault')
      expect(JSON.stringify([host.manager.list(), host.events])).to.not.match(/of vault|user=x/)
    }),
  )

  it(
    'rejects with ERR_CLOSED what is under way when it closes, and lets it go when it opens again',
    withFake(async (plugin, { manager }, again) => {
      const stuck = gate()
      plugin.fail('NodePublishVolume', (_, effect) => stuck.opened.then(effect))
      const failure = failureOf(manager.mount(request()))
      await until(() => plugin.names.includes('NodePublishVolume'))
      const reopening = again()
      expect((await failure).code).to.equal('ERR_CLOSED')
      stuck.open()
      const reopened = await reopening
      reopened.manager.pluginReady('disk')
      await until(() => reopened.manager.list().length === 0)
      expect([plugin.staged.size, plugin.published.size]).to.deep.equal([0, 0])
    }),
  )

  it(
    'tells of a record that cannot be read, leaves it, and loads the others',
    withFake(async (_, { manager, records }, again) => {
      await manager.mount(request())
      records.set('volume/disk/default/broken', '{"schema":1}')
      const { problems, manager: reopened } = await again()
      expect(problems.map(({ code, details }) => [code, details['key']])).to.deep.equal([
        ['ERR_STORE_CORRUPT', 'volume/disk/default/broken'],
      ])
      expect(reopened.list()).to.have.length(1)
      expect(records.has('volume/disk/default/broken')).to.equal(true)
    }),
  )

  it(
    'keeps a copy of a record that cannot be read when a mount takes its place',
    withFake(async (_, { records }, again) => {
      records.set('volume/disk/default/v1', '{"schema":99}')
      const { manager } = await again()
      await manager.mount(request())
      expect(records.get('quarantine/volume/disk/default/v1')).to.equal('{"schema":99}')
      expect(records.get('volume/disk/default/v1')).to.include('"schema":1,')
      await manager.unmount(request())
      expect([...records.keys()]).to.deep.equal(['quarantine/volume/disk/default/v1'])
    }),
  )
})

describe('a volume that has to be free', () => {
  it(
    'is refused with each of its users named once, and let through once it is free',
    withFake(async (_plugin, { manager }) => {
      const uses = [request(), request({ mountName: 'again' }), request({ allocId: 'b' })]
      for (const use of uses) await manager.mount(use)
      expect(() => manager.mustBeFree({ plugin: 'disk', volumeId: 'v1' }))
        .to.throw('volume "v1" of plugin "disk" is held here for a, b: unmount it first')
        .with.property('code', 'ERR_VOLUME_BUSY')
      for (const use of uses) await manager.unmount(use)
      manager.mustBeFree({ plugin: 'disk', volumeId: 'v1' })
    }),
  )
})
