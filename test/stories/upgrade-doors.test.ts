import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { isHealthy, pluginTask, shortTiming, aStory } from './support.js'
import { aFollowedStory, controller, upgradeTiming } from './upgrade-support.js'

const control = (allocId: string) => pluginTask({ allocId, ...controller })
const capability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.fail('it was replaced'),
    (failure: unknown) => failure,
  )

describe('host.replace', () => {
  it(
    'replaces one after the other, each what the one before it has left',
    aFollowedStory({}, async ({ host, begin, orders, replaced }) => {
      await begin(control('one'))
      const all = ['two', 'three', 'four'].map((allocId) => host.replace(control(allocId)))
      expect((await Promise.all(all)).map(([instance]) => instance?.allocId)).to.deep.equal(['two', 'three', 'four'])
      expect(orders.all).to.deep.equal(['start two', 'stop one', 'start three', 'stop two', 'start four', 'stop three'])
      expect(replaced.all.filter(({ phase }) => phase === 'starting').map(({ from, to }) => `${from.allocId} ${to.allocId}`)).to.deep.equal(['one two', 'two three', 'three four']) // prettier-ignore
    }),
  )

  it(
    'lets one that waits for its turn give up, and never begins it',
    aFollowedStory({}, async ({ host, begin, orders }) => {
      await begin(control('one'))
      const first = host.replace(control('two'))
      const caller = new AbortController()
      const second = failureOf(host.replace(control('three'), { signal: caller.signal }))
      caller.abort()
      expect(await second).to.include({ code: 'ERR_ABORTED' })
      await first
      expect(orders.all).to.deep.equal(['start two', 'stop one'])
    }),
  )

  for (const upgrade of ['overlap', 'exclusive'] as const)
    it(
      `stops the old task when the calls that it has are answered (${upgrade})`,
      aFollowedStory(
        { one: { replies: { CreateVolume: [{ delayMs: 700, response: { volume: { volume_id: 'of one' } } }] } } },
        async ({ host, begin }) => {
          const plugin = await begin(control('one'))
          const ends: string[] = []
          const client = host.client<CsiClient>('csi-controller', 'ebs')
          const created = client.createVolume({ name: 'v', volumeCapabilities: [capability] })
          void created.then(({ volume }) => ends.push(volume.volumeId))
          await plugin.waitForCall('CreateVolume')
          host.order$.subscribe((order) => 'order' in order && ends.push(`${order.order} ${order.allocId}`))
          await host.replace({ ...control('two'), upgrade })
          expect(ends).to.deep.equal(['of one', 'stop one'])
        },
      ),
    )

  it(
    'stops the old task also where a call hangs, and the call goes on with the new one when that has ended',
    aFollowedStory(
      { one: { replies: { CreateVolume: [{ fault: 'hang' }] } } },
      async ({ host, begin, pluginOf }) => {
        const plugin = await begin(control('one'))
        const client = host.client<CsiClient>('csi-controller', 'ebs')
        const created = client.createVolume({ name: 'v', volumeCapabilities: [capability] })
        await plugin.waitForCall('CreateVolume')
        await host.replace(control('two'))
        await created
        await (await pluginOf('two')).waitForCall('CreateVolume')
      },
      { timing: { ...upgradeTiming, drainMs: 50 } },
    ),
  )

  it(
    'does not take what its caller changes afterwards',
    aFollowedStory({}, async ({ host, begin }) => {
      await begin(control('one'))
      const given = control('two')
      const done = host.replace(given)
      given.allocId = 'other'
      expect((await done)[0]).to.include({ allocId: 'two' })
    }),
  )

  it(
    'refuses bad input by the name of its field, and does nothing',
    aFollowedStory({}, async ({ host, begin, orders }) => {
      await begin(control('one'))
      for (const [field, task, options] of [
        ['task', null, {}],
        ['task', { allocId: 'x', taskName: 't', isolation: 'none' }, {}],
        ['task.allocId', control('one'), {}],
        ['task.allocId', control(''), {}],
        ['task.upgrade', { ...control('x'), upgrade: 'rolling' }, {}],
        ['csiPlugin.type', pluginTask({ csiPlugin: { id: 'ebs', type: 'nod' as never } }), {}],
        ['force', control('x'), { force: 'yes' }],
        ['signal', control('x'), { signal: {} }],
        ['forced', control('x'), { forced: true }],
      ] as const) {
        const failure = await failureOf(host.replace(task as never, options as never))
        expect(failure, field).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
      }
      expect(orders.all).to.deep.equal([])
    }),
  )

  it(
    'says where there is nothing to replace',
    aFollowedStory({}, async ({ host, stateDir }) => {
      expect(await failureOf(host.replace(control('x')))).to.include({
        code: 'ERR_PLUGIN_UNKNOWN',
        message: 'plugin "ebs" is not registered: there is nothing to replace',
      })
      const connection = { socketPath: `${stateDir}/by-hand.sock` }
      await host.registry.register({ type: 'csi-controller', name: 'ebs', allocId: 'by-hand', connection })
      expect(await failureOf(host.replace(control('x')))).to.include({
        code: 'ERR_PLUGIN_UNKNOWN',
        message: 'plugin "ebs" is served by alloc by-hand, of which no task was told: there is nothing to replace',
      })
    }),
  )

  it(
    'says so where nobody would follow its orders',
    aStory({ timing: shortTiming }, async ({ host, start, health }) => {
      await start(control('one'))
      await health.until(isHealthy)
      expect(await failureOf(host.replace(control('two')))).to.include({
        code: 'ERR_USAGE',
        message: 'nobody follows order$, so that plugin "ebs" cannot be replaced',
      })
    }),
  )
})
