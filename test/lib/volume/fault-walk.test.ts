import { expect } from 'chai'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { FakePlugin, fakeHost, rpcFailure, type FakeHost } from '../../fakes/fake-volumes.js'
import { MortalHost, type Death } from './mortal.js'

const use = (allocId: string, volumeId = 'v1'): MountRequest => ({
  plugin: 'disk',
  volumeId,
  allocId,
  secretsRef: 'vault',
})

/** What is so before the operation, and the operation at which the host dies. */
interface Scenario {
  name: string
  /** Who holds the volume before. */
  holders: readonly string[]
  /** Whom the operation is about: each may hold it or not, where nobody was told how it ended. */
  about: readonly string[]
  before?: (plugin: FakePlugin, host: FakeHost, isOver: () => boolean) => void | Promise<void>
  operation: (host: FakeHost, told: Told, isOver: () => boolean) => Promise<unknown>
  /** Who of them holds it after the operation where nobody dies, by what the plugin has. */
  heldAfter: (capabilities: readonly string[]) => readonly string[]
  /** The volume is larger after it. */
  grows?: boolean
}

/** A growth that fails goes on by itself, as soon as its plugin is there. */
const growth: Scenario['operation'] = async (host, _told, isOver) => {
  const request = { plugin: 'disk', volumeId: 'v1', capacityRange: { requiredBytes: 2n ** 53n + 1n } }
  await host.reports.expand(request).catch(() => host.manager.pluginReady('disk'))
  await until(() => isOver() || !isToGrow(host))
}

const isToGrow = ({ records }: Pick<FakeHost, 'records'>): boolean =>
  [...records.values()].some((record) => record.includes('"growth"'))

/** Who was told that he holds the volume, or holds it no more. */
type Told = Map<string, boolean>

/** A mount that fails leaves nothing, and that is told too. */
const mountFor =
  (allocId: string) =>
  async ({ manager }: FakeHost, told: Told, isOver: () => boolean): Promise<void> => {
    const isHeld = await manager.mount(use(allocId)).then(
      () => true,
      () => false,
    )
    if (!isOver()) told.set(allocId, isHeld)
  }

/** An unmount that fails goes on by itself, as soon as its plugin is there. */
const unmountFor =
  (allocId: string) =>
  async (host: FakeHost, told: Told, isOver: () => boolean): Promise<void> => {
    await host.manager.unmount(use(allocId)).catch(() => host.manager.pluginReady('disk'))
    if (!isOver()) told.set(allocId, false)
    await until(() => isOver() || claimsOf(host).every((claim) => claim.allocId !== allocId))
  }

const both =
  (one: Scenario['operation'], other: Scenario['operation']): Scenario['operation'] =>
  (...about) =>
    Promise.all([one(...about), other(...about)])

const mount = mountFor('a')
const unmount = unmountFor('a')

const claimsOf = ({ manager }: FakeHost) => manager.list().flatMap(({ claims }) => claims)

/** Fails the next call of a name, which is done where nobody knows. */
const failing =
  (rpc: string, outcome: 'final' | 'unknown') =>
  (plugin: FakePlugin): void =>
    plugin.fail(rpc, (_, effect) => {
      if (outcome === 'unknown') effect()
      throw rpcFailure('INTERNAL', outcome)
    })

/** Its plugin has confirmed what there was before. */
const confirmed = async (_: FakePlugin, host: FakeHost, isOver: () => boolean): Promise<void> => {
  host.manager.pluginReady('disk')
  await until(() => isOver() || claimsOf(host).every(({ phase }) => phase === 'mounted'))
}

const outcomes = ['final', 'unknown'] as const

const scenarios: readonly Scenario[] = [
  { name: 'the mount of the first user', holders: [], about: ['a'], operation: mount, heldAfter: () => ['a'] },
  { name: 'the mount of another user', holders: ['b'], about: ['a'], operation: mount, heldAfter: () => ['a'] },
  {
    name: 'the unmount of one of two users',
    holders: ['a', 'b'],
    about: ['a'],
    operation: unmount,
    heldAfter: () => [],
  },
  { name: 'the unmount of the last user', holders: ['a'], about: ['a'], operation: unmount, heldAfter: () => [] },
  {
    name: 'a mount that follows another',
    holders: [],
    about: ['a', 'b'],
    operation: async (...about) => {
      await mount(...about)
      await mountFor('b')(...about)
    },
    heldAfter: () => ['a', 'b'],
  },
  {
    name: 'the unmount of the last user while another mounts it',
    holders: ['a'],
    about: ['a', 'b'],
    operation: both(unmount, mountFor('b')),
    heldAfter: () => ['b'],
  },
  ...[
    ['ControllerPublishVolume', 'attach'] as const,
    ['NodeStageVolume', 'stage'] as const,
    ['NodePublishVolume', undefined] as const,
  ].flatMap(([rpc, capability]) =>
    outcomes.map((outcome) => ({
      name: `a mount whose ${rpc} fails with an outcome that is ${outcome}`,
      holders: [],
      about: ['a'],
      before: failing(rpc, outcome),
      operation: mount,
      // What the plugin does not have is not called.
      heldAfter: (has: readonly string[]) => (capability === undefined || has.includes(capability) ? [] : ['a']),
    })),
  ),
  ...['NodeUnpublishVolume', 'NodeUnstageVolume', 'ControllerUnpublishVolume'].flatMap((rpc) =>
    outcomes.map((outcome) => ({
      name: `an unmount whose ${rpc} fails with an outcome that is ${outcome}, and that goes on`,
      holders: ['a'],
      about: ['a'],
      before: failing(rpc, outcome),
      operation: unmount,
      heldAfter: () => [],
    })),
  ),
  {
    name: 'the growth of a volume',
    holders: ['a'],
    about: [],
    before: confirmed,
    operation: growth,
    heldAfter: () => [],
    grows: true,
  },
  ...['ControllerExpandVolume', 'NodeExpandVolume'].map((rpc) => ({
    name: `a growth of which nobody knows what became of ${rpc}, and that goes on`,
    holders: ['a'],
    about: [],
    before: async (plugin: FakePlugin, host: FakeHost, isOver: () => boolean) => {
      await confirmed(plugin, host, isOver)
      failing(rpc, 'unknown')(plugin)
    },
    operation: growth,
    heldAfter: () => [],
    grows: true,
  })),
  {
    name: 'a growth while the last user goes',
    holders: ['a'],
    about: ['a'],
    before: confirmed,
    operation: both(growth, unmount),
    heldAfter: () => [],
  },
  {
    name: 'the mount of a use that is dead',
    holders: ['a', 'b'],
    about: ['a'],
    before: async (plugin, host, isOver) => {
      plugin.kill('v1')
      host.manager.pluginReady('disk')
      await until(() => isOver() || claimsOf(host).every(({ phase }) => phase === 'stale'))
    },
    operation: mount,
    heldAfter: () => ['a'],
  },
]

/** Resolves when something is so that was not; looked at after every turn of the event loop. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

/** A plugin, with the machine it mounts on, and what its hosts have on record. */
interface Machine {
  plugin: FakePlugin
  records: Map<string, string>
}

/** A machine on which the holders have the volume, and a host has confirmed that. */
async function machineOf(scenario: Scenario, capabilities: readonly string[]): Promise<Machine> {
  const plugin = new FakePlugin()
  plugin.capabilities = new Set(capabilities)
  const records = new Map<string, string>()
  const host = await fakeHost(plugin, records)
  for (const allocId of scenario.holders) await host.manager.mount(use(allocId))
  await host.close()
  return { plugin, records }
}

/** The same again, to go on with in another way. */
function copyOf({ plugin, records }: Machine): Machine {
  return { plugin: plugin.copy(), records: new Map(records) }
}

/** Opens a host that dies, or not, in the operation. Tells at which step, or nothing where it lived on. */
async function operate({ before, operation }: Scenario, { plugin, records }: Machine, death: Death) {
  const told: Told = new Map()
  const died = await new MortalHost(plugin, death).live(async (host, isOver) => {
    await before?.(plugin, host, isOver)
    await operation(host, told, isOver)
  }, records)
  plugin.mishaps.clear()
  return { died, told }
}

/** Everything on record is there, be it dead, and nothing is left to be undone. */
function isSettled(host: FakeHost): boolean {
  return (
    host.records.size === host.manager.list().length &&
    !isToGrow(host) &&
    host.manager.list().every(({ claims }) => claims.length > 0) &&
    claimsOf(host).every(({ phase }) => phase === 'mounted' || phase === 'stale')
  )
}

/** Opens a host, waits until everything is settled, and mounts again what is dead. */
async function settle({ plugin, records }: Machine): Promise<FakeHost> {
  const host = await fakeHost(plugin, records)
  host.manager.pluginReady('disk')
  await until(() => isSettled(host))
  for (const { allocId, phase } of claimsOf(host)) if (phase === 'stale') await host.manager.mount(use(allocId))
  return host
}

/** Settles a machine, and everything agrees: what is held, what is there, what is on record, and what was told. */
async function expectWhole(machine: Machine, { holders, about }: Scenario, told: Told, at: string): Promise<string[]> {
  const { plugin, records } = machine
  const host = await settle(machine)
  const claims = claimsOf(host)
  const held = claims.map(({ allocId }) => allocId)
  const isOther = (allocId: string): boolean => !about.includes(allocId)
  expect(held.filter(isOther), at).to.deep.equal(holders.filter(isOther))
  for (const [allocId, isHeld] of told) expect(held.includes(allocId), `${at}: ${allocId}`).to.equal(isHeld)
  const paths = claims.map(({ path }) => path)
  expect([...plugin.published.keys()].sort(), at).to.deep.equal(paths.sort())
  const once = held.length > 0 ? 1 : 0
  expect(plugin.staged.size, at).to.equal(plugin.capabilities.has('stage') ? once : 0)
  expect(plugin.attached.size, at).to.equal(plugin.capabilities.has('attach') ? once : 0)
  expect([host.manager.list().length, records.size], at).to.deep.equal([once, once])
  expect([...plugin.pathStates], at).to.deep.equal([])
  // What has grown in its storage has on the node too, for as long as it is there.
  if (held.length > 0) expect([...plugin.nodeSizes], at).to.deep.equal([...plugin.storageSizes])
  expect(plugin.offences, at).to.deep.equal([])
  await host.close()
  return held
}

const whole = ['stage', 'attach']
const machines = [whole, ['stage'], ['attach'], []]
const moments = ['before', 'after'] as const

describe('a host that dies at any step of', () => {
  for (const scenario of scenarios)
    describe(scenario.name, () => {
      /** Lets it die at each of its steps, with some kinds of plugins. */
      const walk = async (
        kinds: readonly (readonly string[])[],
        found: (machine: Machine, told: Told, at: string) => Promise<unknown>,
      ): Promise<void> => {
        for (const capabilities of kinds)
          for (const when of moments) {
            const fresh = await machineOf(scenario, capabilities)
            for (let at = 1; ; at++) {
              const machine = copyOf(fresh)
              const { died, told } = await operate(scenario, machine, { at, when })
              const has = `with ${capabilities.join(' and ') || 'neither'}`
              await found(machine, told, `${died ?? 'no death'}, ${has}`)
              if (died !== undefined) continue
              expect(at, 'steps').to.be.greaterThan(3)
              if (scenario.grows) expect([...machine.plugin.nodeSizes]).to.deep.equal([['v1', 2n ** 53n + 1n]])
              const held = await expectWhole(machine, scenario, told, `no death, ${has}`)
              const wanted = scenario.heldAfter(capabilities)
              expect(held.filter((allocId) => scenario.about.includes(allocId))).to.deep.equal(wanted)
              break
            }
          }
      }

      it('finds the volume whole or gone', () =>
        walk(machines, (machine, told, at) => expectWhole(machine, scenario, told, at)))

      for (const hasRecord of [false, true])
        it(`finds it so where the machine was started anew, with a plugin that ${hasRecord ? 'thinks it has all it had' : 'has nothing'}`, () =>
          walk([whole], async (machine, told, at) => {
            machine.plugin.reboot(hasRecord)
            await expectWhole(machine, scenario, told, at)
          }))

      for (const isRebooted of [false, true])
        it(`finds it so where the next host dies while it settles it${isRebooted ? ', after a start of the machine' : ''}`, async () => {
          const fresh = await machineOf(scenario, whole)
          for (let at = 1; ; at++) {
            const left = copyOf(fresh)
            const { died, told } = await operate(scenario, left, { at, when: 'after' })
            if (died === undefined) break
            if (isRebooted) left.plugin.reboot(true)
            for (let again = 1; ; again++) {
              const machine = copyOf(left)
              const death: Death = { at: again, when: again % 2 === 0 ? 'after' : 'before' }
              const diedAgain = await new MortalHost(machine.plugin, death).live((host, isOver) => {
                host.manager.pluginReady('disk')
                return until(() => isOver() || isSettled(host))
              }, machine.records)
              await expectWhole(machine, scenario, told, `${died}, then ${diedAgain ?? 'no death'}`)
              if (diedAgain === undefined) break
            }
          }
        })
    })
})
