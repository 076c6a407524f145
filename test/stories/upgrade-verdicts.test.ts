import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import type { PlugstreamError } from '../../lib/errors.js'
import type { PluginTask } from '../../lib/task/task.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { isHealthy, ofAlloc, pluginTask, type Story } from './support.js'
import { aFollowedStory, controller, phases, upgradeTiming } from './upgrade-support.js'

const node = (allocId: string, overrides: Partial<PluginTask> = {}): PluginTask => pluginTask({ allocId, ...overrides })
const control = (allocId: string, overrides: Partial<PluginTask> = {}): PluginTask =>
  node(allocId, { ...controller, ...overrides })

const failureOf = (work: Promise<unknown>): Promise<PlugstreamError> =>
  work.then(
    () => expect.fail('it was replaced'),
    (failure: unknown) => failure as PlugstreamError,
  )
const currentOf = ({ host }: Pick<Story, 'host'>): string[] =>
  host.registry.list().map(({ type, allocId }) => `${type} ${allocId}`)
const versionOf = async ({ host }: Pick<Story, 'host'>, type = 'csi-node'): Promise<string> =>
  (await host.client<CsiClient>(type, 'ebs').getPluginInfo()).vendorVersion

describe('an upgrade that would lose something', () => {
  for (const [what, old, young, lost] of [
    [
      'a capability',
      { capabilities: { node: ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'] } },
      { capabilities: { node: ['STAGE_UNSTAGE_VOLUME'] } },
      'capability EXPAND_VOLUME',
    ],
    [
      'a capability that nobody here has a name for',
      { capabilities: { node: [1, 4711] } },
      { capabilities: { node: [1] } },
      'capability 4711',
    ],
    ['the node id', { nodeId: 'n1' }, { nodeId: 'n2' }, 'node id n1 (it would be n2)'],
    [
      'topology',
      { topology: { zone: 'a', rack: '7' } },
      { topology: { zone: 'a' } },
      'topology rack 7 (it would be none)',
    ],
    ['room', { maxVolumes: 0 }, { maxVolumes: 8 }, 'room for any number of volumes (it would be 8)'],
    ['its provider', { name: 'a.example' }, { name: 'b.example' }, 'provider a.example (it would be b.example)'],
  ] as const satisfies [string, PluginScript, PluginScript, string][])
    for (const upgrade of ['overlap', 'exclusive'] as const)
      it(
        `is refused (${what}, ${upgrade}) before it is current, and the old one serves on`,
        aFollowedStory({ old, young: { version: '2', ...young } }, async (story) => {
          const { host, begin, registry, replaced, orders } = story
          await begin(node('old'))
          await story.fingerprints.until(isHealthy)
          const failure = await failureOf(host.replace(node('young', { upgrade })))
          expect(failure).to.include({ code: 'ERR_PLUGIN_CONFLICT', retryable: false })
          expect(failure.message).to.contain(`plugin "ebs" would lose ${lost}; force`)
          expect(failure.details).to.deep.equal({ lost })
          expect(registry.all.filter(ofAlloc('young'))).to.deep.equal([])
          expect(currentOf(story)).to.deep.equal(['csi-node old'])
          expect(await versionOf(story)).to.equal('1.0.0')
          expect(phases(replaced.all).slice(-2)).to.deep.equal(['rolling-back', 'failed'])
          expect(orders.all).to.deep.equal(
            upgrade === 'overlap'
              ? ['start young', 'stop young']
              : ['stop old', 'start young', 'stop young', 'start old'],
          )
        }),
      )

  it(
    'is done where it is forced',
    aFollowedStory({ old: { maxVolumes: 9 }, young: { nodeId: 'other', maxVolumes: 1 } }, async (story) => {
      await story.begin(node('old'))
      await story.fingerprints.until(isHealthy)
      await story.host.replace(node('young'), { force: true })
      expect(currentOf(story)).to.deep.equal(['csi-node young'])
    }),
  )

  it(
    'is refused before anything is started where a half of it would go',
    aFollowedStory({}, async (story) => {
      const { host, begin, orders, replaced } = story
      await begin(node('old', { csiPlugin: { id: 'ebs', type: 'monolith' } }))
      await story.fingerprints.until((half) => isHealthy(half) && half.plugin.type === 'csi-node')
      const failure = await failureOf(host.replace(node('young')))
      expect(failure).to.include({ code: 'ERR_PLUGIN_CONFLICT' })
      expect(failure.details).to.deep.equal({ lost: 'csi-controller' })
      expect(orders.all).to.deep.equal([])
      expect(phases(replaced.all)).to.deep.equal(['failed'])
    }),
  )

  it(
    'is none where the new one can do more',
    aFollowedStory(
      {
        old: { capabilities: { node: ['STAGE_UNSTAGE_VOLUME'] }, topology: { zone: 'a' }, maxVolumes: 3 },
        young: { topology: { rack: '1', zone: 'a' } },
      },
      async (story) => {
        await story.begin(node('old'))
        await story.fingerprints.until(isHealthy)
        const [instance] = await story.host.replace(node('young'))
        expect(instance).to.include({ allocId: 'young' })
      },
    ),
  )
})

describe('an upgrade to what fails', () => {
  for (const [what, upgrade, fail] of [
    ['exits', 'overlap', ({ exited }) => exited(node('young'), true)],
    ['exits', 'exclusive', ({ exited }) => exited(node('young'), true)],
    ['is unhealthy', 'overlap', async ({ pluginOf }) => (await pluginOf('young')).change({ ready: false })],
    ['is unhealthy', 'exclusive', async ({ pluginOf }) => (await pluginOf('young')).change({ ready: false })],
  ] as const satisfies [
    string,
    string,
    (story: Parameters<Parameters<typeof aFollowedStory>[1]>[0]) => void | Promise<void>,
  ][])
    it(
      `goes back to the old one where the new one ${what} within its bake time (${upgrade})`,
      aFollowedStory(
        { young: { version: '2' } },
        async (story) => {
          const { host, begin, replaced } = story
          await begin(node('old'))
          const upgraded = host.replace(node('young', { upgrade }))
          await replaced.until(({ phase }) => phase === 'baking')
          expect(await versionOf(story)).to.equal('2')
          await fail(story)
          const failure = await failureOf(upgraded)
          expect(failure).to.include({ code: 'ERR_PLUGIN_NOT_READY', retryable: true })
          expect(failure.message).to.match(/^plugin "ebs" was not replaced: .*young/)
          expect(currentOf(story)).to.deep.equal(['csi-node old'])
          expect(await versionOf(story)).to.equal('1.0.0')
          expect(phases(replaced.all).slice(-3)).to.deep.equal(['baking', 'rolling-back', 'failed'])
        },
        { timing: { ...upgradeTiming, bakeMs: 60_000 } },
      ),
    )

  for (const upgrade of ['overlap', 'exclusive', 'elected'] as const)
    it(
      `goes back to the old one where the new one does not get ready (${upgrade})`,
      aFollowedStory({ young: { listen: 'on-demand' } }, async (story) => {
        const { host, begin, orders } = story
        await begin(node('old'))
        const young = node('young', { upgrade, csiPlugin: { id: 'ebs', type: 'node', healthTimeoutMs: 50 } })
        const failure = await failureOf(host.replace(young))
        expect(failure.message).to.contain('50 ms')
        expect(orders.all.slice(0, 2)).to.deep.equal(
          upgrade === 'exclusive' ? ['stop old', 'start young'] : ['start young', 'stop young'],
        )
        expect(currentOf(story)).to.deep.equal(['csi-node old'])
        expect(await versionOf(story)).to.equal('1.0.0')
      }),
    )

  it(
    'goes back at once where its caller gives up, and does nothing where he had before',
    aFollowedStory({ young: { listen: 'on-demand' } }, async (story) => {
      const { host, begin, orders, pluginOf } = story
      await begin(node('old'))
      const caller = new AbortController()
      const upgraded = failureOf(host.replace(node('young'), { signal: caller.signal }))
      await pluginOf('young')
      caller.abort()
      expect(await upgraded).to.include({ code: 'ERR_ABORTED' })
      expect(currentOf(story)).to.deep.equal(['csi-node old'])
      expect(await versionOf(story)).to.equal('1.0.0')
      orders.skip()
      expect(await failureOf(host.replace(node('young'), { signal: caller.signal }))).to.include({
        code: 'ERR_ABORTED',
      })
      expect(orders.fresh).to.deep.equal([])
    }),
  )

  it(
    'ends with the host, which leaves both as they are',
    aFollowedStory({ young: { listen: 'on-demand' } }, async ({ host, begin, orders, pluginOf }) => {
      await begin(control('old'))
      const upgraded = failureOf(host.replace(control('young')))
      const waiting = failureOf(host.replace(control('younger')))
      await pluginOf('young')
      await host.close()
      expect(await upgraded).to.include({ code: 'ERR_CLOSED' })
      expect(await waiting).to.include({ code: 'ERR_CLOSED' })
      expect(await failureOf(host.replace(control('younger')))).to.include({ code: 'ERR_CLOSED' })
      expect(orders.all).to.deep.equal(['start young'])
    }),
  )
})
