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
  /** Whom the operation is about. */
  about: string
  before?: (plugin: FakePlugin, host: FakeHost, isOver: () => boolean) => void | Promise<void>
  operation: (host: FakeHost) => Promise<unknown>
  /** Whether it is held after the operation where nobody dies, by what the plugin has. */
  isHeldAfter: (capabilities: readonly string[]) => boolean
}

const mount = (host: FakeHost): Promise<unknown> => host.manager.mount(use('a'))
const unmount = (host: FakeHost): Promise<unknown> => host.manager.unmount(use('a'))

const scenarios: readonly Scenario[] = [
  { name: 'the mount of the first user', holders: [], about: 'a', operation: mount, isHeldAfter: () => true },
  { name: 'the mount of another user', holders: ['b'], about: 'a', operation: mount, isHeldAfter: () => true },
  {
    name: 'the unmount of one of two users',
    holders: ['a', 'b'],
    about: 'a',
    operation: unmount,
    isHeldAfter: () => false,
  },
  { name: 'the unmount of the last user', holders: ['a'], about: 'a', operation: unmount, isHeldAfter: () => false },
  ...[
    ['ControllerPublishVolume', 'attach'] as const,
    ['NodeStageVolume', 'stage'] as const,
    ['NodePublishVolume', undefined] as const,
  ].flatMap(([rpc, capability]) =>
    (['final', 'unknown'] as const).map((outcome) => ({
      name: `a mount whose ${rpc} fails with an outcome that is ${outcome}`,
      holders: [],
      about: 'a',
      before: (plugin: FakePlugin) =>
        plugin.fail(rpc, (_, effect) => {
          if (outcome === 'unknown') effect()
          throw rpcFailure('INTERNAL', outcome)
        }),
      operation: mount,
      // What the plugin does not have is not called.
      isHeldAfter: (capabilities: readonly string[]) => capability !== undefined && !capabilities.includes(capability),
    })),
  ),
  {
    name: 'the mount of a use that is dead',
    holders: ['a', 'b'],
    about: 'a',
    before: async (plugin, host, isOver) => {
      const { manager } = host
      manager.pluginReady('disk')
      await until(() => isOver() || isSettled(host))
      for (const { path } of manager.list()[0]?.claims ?? []) plugin.pathStates.set(path, 'stale')
      manager.pluginReady('disk')
      await until(() => isOver() || (manager.list()[0]?.claims.every(({ phase }) => phase === 'stale') ?? false))
      plugin.pathStates.clear()
    },
    operation: mount,
    isHeldAfter: () => true,
  },
]

/** Resolves when something is so that was not; looked at after every turn of the event loop. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

/** A machine on which the holders have the volume. */
async function machine(scenario: Scenario, capabilities: readonly string[]) {
  const plugin = new FakePlugin()
  plugin.capabilities = new Set(capabilities)
  const records = new Map<string, string>()
  const host = await fakeHost(plugin, records)
  for (const allocId of scenario.holders) await host.manager.mount(use(allocId))
  await host.close()
  return { plugin, records }
}

/** Opens a host that dies, or not, in the operation. Tells at which step, or nothing where it lived on. */
async function operate(
  { before, operation }: Scenario,
  plugin: FakePlugin,
  records: Map<string, string>,
  death: Death,
): Promise<string | undefined> {
  const first = await fakeHost(plugin, records)
  first.manager.pluginReady('disk')
  await until(() => isSettled(first))
  await first.close()
  return new MortalHost(plugin, death).live(async (host, isOver) => {
    await before?.(plugin, host, isOver)
    await operation(host)
  }, records)
}

/** Everything on record is there, and nothing is left to be undone. */
function isSettled({ manager }: FakeHost): boolean {
  return manager.list().every(({ claims }) => claims.length > 0 && claims.every(({ phase }) => phase === 'mounted'))
}

/** Opens the host again, with the plugin well, and waits until everything is settled. */
async function settle(plugin: FakePlugin, records: Map<string, string>): Promise<FakeHost> {
  plugin.mishaps.clear()
  plugin.pathStates.clear()
  const host = await fakeHost(plugin, records)
  host.manager.pluginReady('disk')
  await until(() => isSettled(host))
  return host
}

/** Everything agrees: what is held, what is there, and what is on record. */
function expectWhole(host: FakeHost, plugin: FakePlugin, { holders, about }: Scenario, at: string): void {
  const [volume, ...others] = host.manager.list()
  const held = volume?.claims.map(({ allocId }) => allocId) ?? []
  expect(others, at).to.deep.equal([])
  // Others hold what they held; who it was about has it or has it not.
  expect(
    held.filter((allocId) => allocId !== about),
    at,
  ).to.deep.equal(holders.filter((allocId) => allocId !== about))
  expect([...plugin.published.keys()].sort(), at).to.deep.equal((volume?.claims ?? []).map(({ path }) => path).sort())
  expect(plugin.staged.size, at).to.equal(plugin.capabilities.has('stage') && volume ? 1 : 0)
  expect(plugin.attached.size, at).to.equal(plugin.capabilities.has('attach') && volume ? 1 : 0)
  expect(host.records.size, at).to.equal(volume ? 1 : 0)
  expect(plugin.offences, at).to.deep.equal([])
}

const machines = [['stage', 'attach'], ['stage'], []]

describe('a host that dies at any step of', () => {
  for (const scenario of scenarios)
    describe(scenario.name, () => {
      for (const capabilities of machines)
        for (const when of ['before', 'after'] as const)
          it(`finds the volume whole or gone, ${when} the step, with a plugin that has ${capabilities.join(' and ') || 'neither'}`, async () => {
            const steps: string[] = []
            for (let at = 1; ; at++) {
              const { plugin, records } = await machine(scenario, capabilities)
              const died = await operate(scenario, plugin, records, { at, when })
              const host = await settle(plugin, records)
              expectWhole(host, plugin, scenario, died ?? 'no death')
              await host.close()
              if (died === undefined) {
                const held = host.manager.list()[0]?.claims.map(({ allocId }) => allocId) ?? []
                expect(held.includes(scenario.about)).to.equal(scenario.isHeldAfter(capabilities))
                break
              }
              steps.push(died)
            }
            expect(steps.length).to.be.greaterThan(2)
          })

      it('finds it so also where the machine was started anew in between', async () => {
        for (let at = 1; ; at++) {
          const { plugin, records } = await machine(scenario, ['stage', 'attach'])
          const died = await operate(scenario, plugin, records, { at, when: 'after' })
          if (died === undefined) break
          plugin.bootId = 'boot-2'
          plugin.staged.clear()
          plugin.published.clear()
          const host = await settle(plugin, records)
          expectWhole(host, plugin, scenario, died)
          await host.close()
        }
      })
    })

  it('an operation and then of what settles it', async () => {
    for (const scenario of scenarios) {
      for (let at = 1; ; at += 3) {
        const { plugin, records } = await machine(scenario, ['stage', 'attach'])
        const died = await operate(scenario, plugin, records, { at, when: 'after' })
        if (died === undefined) break
        plugin.mishaps.clear()
        for (let again = 1; ; again++) {
          const death: Death = { at: again, when: again % 2 === 0 ? 'after' : 'before' }
          const diedAgain = await new MortalHost(plugin, death).live((host, isOver) => {
            host.manager.pluginReady('disk')
            return until(() => isOver() || isSettled(host))
          }, records)
          const last = await settle(plugin, records)
          expectWhole(last, plugin, scenario, `${died}, then ${diedAgain}`)
          await last.close()
          if (diedAgain === undefined) break
        }
      }
    }
  })
})
