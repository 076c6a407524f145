import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { fakeHost, FakePlugin, rpcFailure, type FakeHost, type Mishap } from '../../fakes/fake-volumes.js'
import { settled } from './support.js'

const use = (allocId: string): MountRequest => ({ plugin: 'disk', volumeId: 'v1', allocId })

/** What is so before the operation, and the operation in which the plugin is killed. It is about `a`. */
interface Scenario {
  name: string
  holders: readonly string[]
  /** Takes the place of the host that the holders mounted with. */
  before?: (plugin: FakePlugin, reopen: () => Promise<FakeHost>, host: FakeHost) => Promise<unknown>
  operation: 'mount' | 'unmount'
}

const scenarios: readonly Scenario[] = [
  { name: 'the mount of the first user', holders: [], operation: 'mount' },
  { name: 'the mount of another user', holders: ['b'], operation: 'mount' },
  { name: 'the unmount of one of two users', holders: ['a', 'b'], operation: 'unmount' },
  { name: 'the unmount of the last user', holders: ['a'], operation: 'unmount' },
  {
    name: 'the mount of a use that is dead',
    holders: ['a', 'b'],
    before: async (plugin, _, { manager }) => {
      plugin.kill('v1')
      manager.pluginReady('disk')
      await settled()
    },
    operation: 'mount',
  },
  {
    name: 'the mount of a use of the host before',
    holders: ['a', 'b'],
    before: (_, reopen) => reopen(),
    operation: 'mount',
  },
  {
    name: 'the unmount of a use of the host before',
    holders: ['a'],
    before: (_, reopen) => reopen(),
    operation: 'unmount',
  },
  ...(['mount', 'unmount'] as const).map((operation) => ({
    name: `the ${operation} of a use of before a start of the machine`,
    holders: ['a', 'b'],
    before: (plugin: FakePlugin, reopen: () => Promise<FakeHost>) => {
      plugin.bootId = 'boot-2' // while the plugin thinks that all of it is there
      return reopen()
    },
    operation,
  })),
]

/** The plugin is killed at one call, or that one and all that follow, before or after the call has had an effect. */
interface Kill {
  at: number
  isDone: boolean
  staysAway: boolean
}

const kills: readonly Omit<Kill, 'at'>[] = [true, false].flatMap((isDone) =>
  [true, false].map((staysAway) => ({ isDone, staysAway })),
)

/** What happens at each call, and where it was killed. */
function killed({ at, isDone, staysAway }: Kill): { mishap: Mishap; where: () => string | undefined } {
  let calls = 0
  let where: string | undefined
  const mishap: Mishap = ({ rpc }, effect) => {
    calls++
    if (calls < at || (calls > at && !staysAway)) return
    where ??= `call ${calls}, ${rpc}`
    if (isDone && calls === at) effect()
    throw rpcFailure('UNAVAILABLE', 'unknown')
  }
  return { mishap, where: () => where }
}

/** Everything agrees: who holds the volume, what is there, and what is on record. */
function expectHeld(host: FakeHost, plugin: FakePlugin, holders: readonly string[], at: string): void {
  const claims = host.manager.list().flatMap((volume) => volume.claims)
  expect(claims.map(({ allocId, phase, problem }) => [allocId, phase, problem]).sort(), at).to.deep.equal(
    [...holders].sort().map((allocId) => [allocId, 'mounted', undefined]),
  )
  const once = holders.length > 0 ? 1 : 0
  expect([...plugin.published.keys()].sort(), at).to.deep.equal(claims.map(({ path }) => path).sort())
  expect([plugin.staged.size, plugin.attached.size, host.records.size], at).to.deep.equal([once, once, once])
  expect([...plugin.pathStates], at).to.deep.equal([])
  expect(plugin.offences, at).to.deep.equal([])
}

/** Does the operation with a plugin that is killed in it. */
async function operate({ holders, before, operation }: Scenario, kill: Kill) {
  const plugin = new FakePlugin()
  const records = new Map<string, string>()
  let host = await fakeHost(plugin, records)
  for (const allocId of holders) await host.manager.mount(use(allocId))
  const reopen = async (): Promise<FakeHost> => {
    await host.close()
    return (host = await fakeHost(plugin, records))
  }
  await before?.(plugin, reopen, host)
  const work = () => host.manager[operation](use('a'))
  const { mishap, where } = killed(kill)
  plugin.always = mishap
  const failure = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  plugin.always = undefined
  return { plugin, host, work, failure, at: where() }
}

const others = ({ holders }: Scenario): string[] => holders.filter((allocId) => allocId !== 'a')

describe('a plugin that is killed at any call of', () => {
  for (const scenario of scenarios)
    describe(scenario.name, () => {
      for (const kill of kills) {
        const how = `${kill.isDone ? 'after' : 'before'} its effect, and ${kill.staysAway ? 'stays away' : 'is back at once'}`

        it(`fails it with a reason, and lets it be done again, where it is killed ${how}`, async () => {
          const walked: string[] = []
          for (let at = 1; ; at++) {
            const { plugin, host, work, failure, at: where } = await operate(scenario, { ...kill, at })
            const point = where ?? 'nowhere'
            if (where === undefined) expect(failure, point).to.equal(undefined)
            else {
              expect(failure, point).to.be.instanceOf(PlugstreamError)
              expect(failure, point).to.have.property('code', 'ERR_CSI_RPC')
            }
            await work()
            host.manager.pluginReady('disk')
            await settled()
            expectHeld(host, plugin, [...others(scenario), ...(scenario.operation === 'mount' ? ['a'] : [])], point)
            await host.close()
            if (where === undefined) break
            walked.push(where)
          }
          expect(walked.length).to.be.greaterThan(0)
        })

        it(`settles it by itself when the plugin is back, where it is killed ${how}`, async () => {
          for (let at = 1; ; at++) {
            const { plugin, host, failure, at: where } = await operate(scenario, { ...kill, at })
            host.manager.pluginReady('disk')
            await settled()
            // A use that was held stays held, whatever becomes of its mount; what was to be unmounted is gone.
            const isHeld = scenario.operation === 'mount' && (failure === undefined || scenario.holders.includes('a'))
            expectHeld(host, plugin, [...others(scenario), ...(isHeld ? ['a'] : [])], where ?? 'nowhere')
            await host.close()
            if (where === undefined) break
          }
        })
      }
    })
})
