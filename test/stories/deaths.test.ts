import { expect } from 'chai'
import type { HealthReason } from '../../lib/plugin/health.js'
import { serveNothing } from '../testing/mute-server.js'
import type { SpawnedPlugin } from '../testing/spawn-scripted-plugin.js'
import { aStory, because, isHealthy, pluginTask, reasonsOf, shortTiming, type Story } from './support.js'

interface Death {
  what: string
  happens(plugin: SpawnedPlugin, story: Story): unknown
  reasons: readonly HealthReason[]
  /** How it comes back, where it does. */
  back?(plugin: SpawnedPlugin): unknown
}

const deaths: readonly Death[] = [
  { what: 'is killed', happens: (plugin) => plugin.kill('SIGKILL'), reasons: ['socket-refused'] },
  { what: 'ends in good order', happens: (plugin) => plugin.kill('SIGTERM'), reasons: ['socket-missing'] },
  {
    what: 'is stopped, and goes on',
    happens: (plugin) => plugin.kill('SIGSTOP'),
    reasons: ['probe-timeout'],
    back: (plugin) => plugin.kill('SIGCONT'),
  },
  {
    what: 'loses its socket, though it is connected',
    happens: (plugin) => plugin.unlinkSocket(),
    reasons: ['socket-missing'],
    back: (plugin) => plugin.listen(),
  },
  {
    what: 'has its socket taken by a server that says nothing',
    happens: async (plugin, { keep }) => {
      await plugin.unlinkSocket()
      keep(await serveNothing(plugin.socketPath))
    },
    reasons: ['socket-missing', 'socket-replaced', 'probe-timeout'],
  },
  {
    what: 'has its socket taken by a server of something else',
    happens: (plugin) => plugin.rebind({ replies: unserved }),
    reasons: ['socket-missing', 'socket-replaced', 'not-csi'],
  },
]

const unserved = {
  Probe: [{ status: 'UNIMPLEMENTED', repeat: true }],
  GetPluginInfo: [{ status: 'UNIMPLEMENTED', repeat: true }],
} as const

describe('a healthy plugin that', () => {
  for (const { what, happens, reasons, back } of deaths) {
    it(
      `${what}: ${reasons.at(-1)}`,
      aStory({ timing: shortTiming }, async (story) => {
        const { health, fingerprints, notes, registry, nodes, spawn } = story
        const plugin = await spawn(pluginTask(), { topology: { zone: 'z1' } })
        const { node } = await fingerprints.until(isHealthy)
        await notes.until(({ kind }) => kind === 'plugin-healthy')
        health.skip()

        await happens(plugin, story)
        const last = await health.until(because(reasons.at(-1) ?? 'unknown'))
        expect(last).to.include({ healthy: false, final: false })
        expect(reasons).to.include.members(reasonsOf(health.fresh))

        const unhealthy = await fingerprints.until((fingerprint) => !isHealthy(fingerprint))
        expect(unhealthy.node).to.deep.equal(node)
        await nodes.until(({ instances: [instance] }) => instance?.health.reason === last.reason)
        const note = await notes.until(({ kind }) => kind === 'plugin-unhealthy')
        expect(note.reason).to.be.oneOf(reasons)
        expect(registry.all).to.have.length(1)

        if (!back) return
        health.skip()
        fingerprints.skip()
        await back(plugin)
        await health.until(isHealthy)
        await fingerprints.until(isHealthy)
        await notes.untilAll(([, , third]) => third)
        expect(notes.all.map(({ kind }) => kind)).to.deep.equal([
          'plugin-healthy',
          'plugin-unhealthy',
          'plugin-healthy',
        ])
      }),
    )
  }

  it(
    'drops its connections is looked into at once, and is healthy all the while',
    aStory({}, async ({ health, fingerprints, notes, start }) => {
      const plugin = await start(pluginTask())
      await fingerprints.until(isHealthy)
      for (const read of [2, 3]) {
        await plugin.disconnect()
        await plugin.waitForCall('NodeGetInfo', read)
      }
      expect(reasonsOf(health.all)).to.deep.equal(['ready'])
      expect(notes.all).to.have.length(1)
    }),
  )
})
