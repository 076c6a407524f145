import { expect } from 'chai'
import { volumeRetryMs } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { fakeHost, FakePlugin, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { gate } from '../../fakes/fake-store.js'
import { Clock, failureOf, settled } from './support.js'

const use = (allocId: string): MountRequest => ({ plugin: 'disk', volumeId: 'v1', allocId })

/** Tells a story of hosts over one plugin and one store, and that the plugin was treated as it may be. */
const story =
  (tell: (plugin: FakePlugin, open: () => Promise<FakeHost>) => Promise<void>) => async (): Promise<void> => {
    const plugin = new FakePlugin()
    const records = new Map<string, string>()
    const hosts: FakeHost[] = []
    const open = async (): Promise<FakeHost> => {
      await hosts.at(-1)?.close()
      const host = await fakeHost(plugin, records)
      hosts.push(host)
      return host
    }
    try {
      await tell(plugin, open)
      expect(plugin.offences).to.deep.equal([])
    } finally {
      for (const host of hosts) await host.close()
    }
  }

const claims = ({ manager }: FakeHost): unknown[] =>
  manager.list().flatMap((volume) => volume.claims.map(({ allocId, phase, problem }) => [allocId, phase, problem]))

/** A plugin that says OK to publishing, of which nothing comes. */
const loses =
  (plugin: FakePlugin) =>
  ({ path }: { path?: string }, effect: () => void): void => {
    effect()
    plugin.published.delete(path ?? '')
  }

async function ready({ manager }: Pick<FakeHost, 'manager'>): Promise<void> {
  manager.pluginReady('disk')
  await settled()
}

describe('volumes of which a part was lost', () => {
  it(
    'does not unstage for one use what another use, not confirmed yet, may have',
    story(async (plugin, open) => {
      const first = await open()
      const a = await first.manager.mount(use('a'))
      await first.manager.mount(use('b'))
      const second = await open()
      plugin.published.delete(a.path)
      plugin.fail('NodePublishVolume', loses(plugin))
      await ready(second)
      expect(plugin.names).to.not.include('NodeUnstageVolume')
      expect(claims(second)).to.deep.equal([
        ['a', 'mounted', undefined],
        ['b', 'mounted', undefined],
      ])
      expect(plugin.published.size).to.equal(2)
    }),
  )

  it(
    'unpublishes what was being unmounted before a start of the machine, before it unstages',
    story(async (plugin, open) => {
      const first = await open()
      await first.manager.mount(use('a'))
      const b = await first.manager.mount(use('b'))
      plugin.fail('NodeUnpublishVolume', rpcFailure('INTERNAL'))
      await failureOf(b.unmount())
      plugin.bootId = 'boot-2'
      const second = await open()
      await ready(second)
      expect(claims(second)).to.deep.equal([['a', 'mounted', undefined]])
      expect([plugin.published.size, plugin.staged.size]).to.deep.equal([1, 1])
    }),
  )

  it(
    'does not take down again, after a start of the machine, what was given to a caller since',
    story(async (plugin, open) => {
      const first = await open()
      await first.manager.mount(use('a'))
      await first.manager.mount(use('b'))
      plugin.bootId = 'boot-2'
      const second = await open()
      plugin.fail('NodePublishVolume', () => undefined, rpcFailure('INTERNAL'))
      await ready(second)
      const a = await second.manager.mount(use('a'))
      plugin.calls.length = 0
      await ready(second)
      expect(plugin.calls.filter(({ path }) => path === a.path)).to.deep.equal([])
      expect(claims(second)).to.deep.equal([
        ['a', 'mounted', undefined],
        ['b', 'mounted', undefined],
      ])
    }),
  )

  for (const rpc of ['NodeUnpublishVolume', 'NodeUnstageVolume'])
    it(
      `brings nothing up after a start of the machine before everything is down, also where ${rpc} fails`,
      story(async (plugin, open) => {
        const first = await open()
        await first.manager.mount(use('a'))
        await first.manager.mount(use('b'))
        plugin.bootId = 'boot-2'
        const second = await open()
        plugin.calls.length = 0
        plugin.fail(rpc, rpcFailure('INTERNAL'))
        await ready(second)
        expect(plugin.names).to.not.include('NodePublishVolume')
        await ready(second)
        expect(plugin.names.slice(-3)).to.deep.equal(['NodeStageVolume', 'NodePublishVolume', 'NodePublishVolume'])
      }),
    )

  for (const rpc of ['NodeUnpublishVolume', 'NodeUnstageVolume'])
    it(
      `does not publish from a dead stage where making it anew stopped at ${rpc}`,
      story(async (plugin, open) => {
        const host = await open()
        const volumes = [await host.manager.mount(use('a')), await host.manager.mount(use('b'))]
        for (const { path } of volumes) plugin.pathStates.set(path, 'stale')
        await ready(host)
        plugin.calls.length = 0
        // The second of the two, where it is called for each.
        if (rpc === 'NodeUnpublishVolume') plugin.fail(rpc, () => undefined)
        plugin.fail(rpc, rpcFailure('INTERNAL'))
        await failureOf(host.manager.mount(use('a')))
        expect(plugin.names).to.not.include('NodePublishVolume')
        plugin.pathStates.clear()
        await ready(host)
        expect(plugin.names.slice(-4)).to.deep.equal([
          'NodeUnstageVolume',
          'NodeStageVolume',
          'NodePublishVolume',
          'NodePublishVolume',
        ])
        expect(claims(host)).to.deep.equal([
          ['a', 'mounted', undefined],
          ['b', 'mounted', undefined],
        ])
      }),
    )

  it(
    'takes a mount that did not answer and answers again for well',
    story(async (plugin, open) => {
      const host = await open()
      const { path } = await host.manager.mount(use('a'))
      plugin.pathStates.set(path, 'hung')
      await ready(host)
      expect(claims(host)).to.deep.equal([['a', 'stale', `looked at ${path}`]])
      plugin.pathStates.clear()
      await ready(host)
      expect(claims(host)).to.deep.equal([['a', 'mounted', undefined]])
    }),
  )

  it(
    'does not take a mount that was dead for well where it was unmounted since',
    story(async (plugin, open) => {
      const host = await open()
      const { path } = await host.manager.mount(use('a'))
      plugin.kill('v1')
      await ready(host)
      plugin.published.delete(path)
      plugin.pathStates.clear()
      await ready(host)
      expect(claims(host)).to.deep.include.members([['a', 'stale', `nothing is mounted at ${path}`]])
      await host.manager.mount(use('a'))
      expect(claims(host)).to.deep.equal([['a', 'mounted', undefined]])
      expect(plugin.published.has(path)).to.equal(true)
    }),
  )

  for (const [who, settles] of [
    ['a look at all of its plugin', true],
    ['who asks for it again', false],
  ] as const)
    it(
      `that somebody else has unmounted is found by ${who}, and made anew by mounting it again, beside others that stay`,
      story(async (plugin, open) => {
        const host = await open()
        const { path } = await host.manager.mount(use('a'))
        await host.manager.mount(use('b'))
        plugin.lose(path)
        plugin.calls.length = 0
        if (settles) {
          await ready(host)
          expect(claims(host)).to.deep.equal([
            ['a', 'stale', `nothing is mounted at ${path}`],
            ['b', 'mounted', undefined],
          ])
          await ready(host)
          expect(plugin.names).to.deep.equal([])
        }
        expect((await host.manager.mount(use('a'))).path).to.equal(path)
        expect(plugin.names).to.deep.equal(['NodeUnpublishVolume', 'NodePublishVolume'])
        expect(plugin.published.has(path)).to.equal(true)
        expect(claims(host)).to.deep.equal([
          ['a', 'mounted', undefined],
          ['b', 'mounted', undefined],
        ])
        const told = host.events.filter(({ kind }) => kind === 'stale')
        expect(told.map(({ allocId, message }) => [allocId, message])).to.deep.equal([
          ['a', `${path}: nothing is mounted at ${path}`],
        ])
      }),
    )

  it(
    'that somebody else has unmounted can be unmounted',
    story(async (plugin, open) => {
      const host = await open()
      const { path } = await host.manager.mount(use('a'))
      plugin.lose(path)
      await ready(host)
      await host.manager.unmount(use('a'))
      expect([host.manager.list(), plugin.published.size, plugin.staged.size]).to.deep.equal([[], 0, 0])
    }),
  )

  it(
    'finds a mount of the host before that is dead, though its plugin confirms it',
    story(async (plugin, open) => {
      const { path } = await (await open()).manager.mount(use('a'))
      const second = await open()
      plugin.kill('v1')
      await ready(second)
      expect(claims(second)).to.deep.equal([['a', 'stale', `looked at ${path}`]])
      await second.manager.mount(use('a'))
      expect(claims(second)).to.deep.equal([['a', 'mounted', undefined]])
      expect([...plugin.pathStates]).to.deep.equal([])
    }),
  )
})

describe('a mount that fails', () => {
  it(
    'leaves no problem at a use that is there, whose caller gave up at the last moment',
    story(async (plugin, open) => {
      await (await open()).manager.mount(use('a'))
      const second = await open()
      const caller = new AbortController()
      plugin.fail('NodePublishVolume', () => caller.abort())
      await failureOf(second.manager.mount(use('a'), { signal: caller.signal }), 'ERR_ABORTED')
      await ready(second)
      expect(claims(second)).to.deep.equal([['a', 'mounted', undefined]])
    }),
  )

  it(
    'is not even claimed where its caller gave up before',
    story(async (plugin, open) => {
      const { ports, manager } = await open()
      const saved: unknown[] = []
      const { save } = ports.store
      ports.store.save = (batch) => {
        saved.push(batch)
        return save(batch)
      }
      const goOn = plugin.hang('NodeGetInfo', true)
      const caller = new AbortController()
      const failure = failureOf(manager.mount(use('a'), { signal: caller.signal }), 'ERR_ABORTED')
      await settled()
      caller.abort()
      await failure
      goOn()
      await settled()
      expect([saved, plugin.names]).to.deep.equal([[], ['NodeGetInfo']])
    }),
  )

  for (const isKept of [false, true])
    it(
      `is not held where the store fails as it is let go of, and ${isKept ? 'keeps it' : 'does not keep it'}`,
      story(async (plugin, open) => {
        const { ports, manager, records } = await open()
        const { save } = ports.store
        ports.store.save = async (batch) => {
          if (JSON.stringify(batch).includes('"held":true')) return save(batch)
          ports.store.save = save
          if (isKept) await save(batch)
          throw new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
        }
        plugin.fail('NodePublishVolume', rpcFailure('INTERNAL'))
        await failureOf(manager.mount(use('a')), 'ERR_CSI_RPC')
        manager.pluginReady('disk')
        await settled()
        expect([manager.list(), [...records]]).to.deep.equal([[], []])
        expect([plugin.published.size, plugin.staged.size, plugin.attached.size]).to.deep.equal([0, 0, 0])
      }),
    )

  for (const holders of [[], ['b']])
    it(
      `does not come back with the next host, where the store failed and kept its claim ${holders.length > 0 ? 'beside another' : 'all the same'}`,
      story(async (plugin, open) => {
        const first = await open()
        for (const allocId of holders) await first.manager.mount(use(allocId))
        const { save } = first.ports.store
        first.ports.store.save = async (batch) => {
          first.ports.store.save = save
          await save(batch)
          throw new PlugstreamError('ERR_STORE_WRITE', 'no answer')
        }
        await failureOf(first.manager.mount(use('a')), 'ERR_STORE_WRITE')
        await ready(first)
        const second = await open()
        await ready(second)
        expect(claims(second)).to.deep.equal(holders.map((allocId) => [allocId, 'mounted', undefined]))
        expect(plugin.published.size).to.equal(holders.length)
      }),
    )
})

describe('an unmount of what could not be saved', () => {
  it(
    'has it off the record when it is answered, though it was never mounted',
    story(async (plugin, open) => {
      const { ports, manager } = await open()
      await manager.mount(use('b'))
      const { save } = ports.store
      ports.store.save = async (batch) => {
        ports.store.save = save
        await save(batch)
        throw new PlugstreamError('ERR_STORE_WRITE', 'no answer')
      }
      await failureOf(manager.mount(use('a')), 'ERR_STORE_WRITE')
      await manager.unmount(use('a'))
      const second = await open()
      await ready(second)
      expect(claims(second)).to.deep.equal([['b', 'mounted', undefined]])
      expect(plugin.published.size).to.equal(1)
    }),
  )
})

describe('an unmount that cannot be saved', () => {
  it(
    'is put right on record again, where the use that stays held is settled',
    story(async (_, open) => {
      const host = await open()
      const volume = await host.manager.mount(use('a'))
      const { save } = host.ports.store
      host.ports.store.save = async (batch) => {
        host.ports.store.save = save
        await save(batch)
        throw new PlugstreamError('ERR_STORE_WRITE', 'no answer')
      }
      using clock = new Clock()
      await failureOf(volume.unmount(), 'ERR_STORE_WRITE')
      await clock.pass(volumeRetryMs)
      expect([...host.records.values()].join()).to.include('"held":true')
      expect(claims(host)).to.deep.equal([['a', 'mounted', undefined]])
    }),
  )

  it(
    'leaves nothing on record that undoes a mount that was answered since',
    story(async (plugin, open) => {
      const { ports, manager } = await open()
      const volume = await manager.mount(use('a'))
      const { save } = ports.store
      ports.store.save = async (batch) => {
        ports.store.save = save
        await save(batch)
        throw new PlugstreamError('ERR_STORE_WRITE', 'no answer')
      }
      await failureOf(volume.unmount(), 'ERR_STORE_WRITE')
      await manager.mount(use('a'))
      const second = await open()
      await ready(second)
      expect(claims(second)).to.deep.equal([['a', 'mounted', undefined]])
      expect(plugin.published.size).to.equal(1)
    }),
  )
})

describe('an unmount whose caller gives up', () => {
  it(
    'as its turn comes is not done: it is told that it waited for it',
    story(async (plugin, open) => {
      const host = await open()
      const volume = await host.manager.mount(use('a'))
      const caller = new AbortController()
      const failure = failureOf(volume.unmount({ signal: caller.signal }), 'ERR_ABORTED')
      caller.abort()
      expect((await failure).message).to.include('(waiting for its turn)')
      await settled()
      expect(claims(host)).to.deep.equal([['a', 'mounted', undefined]])
      expect(plugin.names).to.not.include('NodeUnpublishVolume')
    }),
  )

  it(
    'does not say that it waited for its turn where it had it',
    story(async (_, open) => {
      const { manager, ports } = await open()
      const volume = await manager.mount(use('a'))
      const { save } = ports.store
      const slow = gate()
      ports.store.save = (batch) => slow.opened.then(() => save(batch))
      const caller = new AbortController()
      const failure = failureOf(volume.unmount({ signal: caller.signal }), 'ERR_ABORTED')
      const waiting = failureOf(volume.unmount({ signal: caller.signal }), 'ERR_ABORTED')
      await settled()
      caller.abort()
      expect((await failure).message).to.equal('unmounting volume "v1" of plugin "disk": aborted')
      expect((await waiting).message).to.equal(
        'unmounting volume "v1" of plugin "disk": aborted (waiting for its turn)',
      )
      slow.open()
      await settled()
      await ready({ manager })
      expect(manager.list()).to.deep.equal([])
    }),
  )
})
