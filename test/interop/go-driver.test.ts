import { lstatSync } from 'node:fs'
import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import type { PluginFingerprint } from '../../lib/plugin/fingerprint.js'
import type { HealthEvent } from '../../lib/plugin/health.js'
import { because, isHealthy, kindsOf, ofAlloc, ofType, pluginTask } from '../stories/support.js'
import { aGoStory, type GoStory } from './go-story.js'
import { needsTools } from './tools.js'

const types = ['csi-controller', 'csi-node'] as const

/** Both halves of a driver are well, and what they can do has been read. */
async function wellAndKnown({ health, fingerprints }: GoStory, allocId = 'a1'): Promise<void> {
  for (const type of types) {
    const isIt = (event: HealthEvent | PluginFingerprint): boolean =>
      ofType(type)(event) && ofAlloc(allocId)(event) && isHealthy(event)
    await health.until(isIt)
    await fingerprints.until(isIt)
  }
}

const skipAll = ({ health, fingerprints, registry, tasks, notes }: GoStory): void =>
  [health, fingerprints, registry, tasks, notes].forEach((recording) => recording.skip())

describe('a host with a driver in Go as its task', () => {
  before(async function () {
    await needsTools(this)
  })

  it(
    'registers it as two plugins, finds them well, and learns what they can do',
    aGoStory(async (story) => {
      const { host, registry, fingerprints, run, problems } = story
      await run({ maxVolumes: 5 })
      await wellAndKnown(story)

      expect(registry.all.map(({ plugin }) => [plugin.type, plugin.provider, plugin.version])).to.deep.equal([
        ['csi-controller', 'hostpath.csi.example', '0.3.0'],
        ['csi-node', 'hostpath.csi.example', '0.3.0'],
      ])
      const controller = fingerprints.all.findLast(ofType('csi-controller'))
      expect(controller).to.include({ requiresControllerPlugin: true, requiresTopologies: true })
      expect(controller?.controller?.names).to.include.members([
        'CREATE_DELETE_VOLUME',
        'EXPAND_VOLUME',
        'CLONE_VOLUME',
      ])
      // It advertises the capability 0, UNKNOWN, too: that is none.
      expect(fingerprints.all.findLast(ofType('csi-node'))?.node).to.deep.equal({
        id: 'hostpath.csi.example',
        maxVolumes: 5,
        topology: { 'io.kubernetes.storage.mock/node': 'some-mock-node' },
        names: ['EXPAND_VOLUME', 'GET_VOLUME_HEALTH', 'GET_VOLUME_STATS', 'STAGE_UNSTAGE_VOLUME'],
        unknown: [],
      })
      const info = await host.client<CsiClient>('csi-node', 'hostpath').getPluginInfo()
      expect(info).to.include({ name: 'hostpath.csi.example', vendorVersion: '0.3.0' })
      expect(problems.all).to.deep.equal([])
    }),
  )

  it(
    'tells at once that it was killed, and follows the process that comes after it',
    aGoStory(async (story) => {
      const { host, health, fingerprints, registry, run, pidOf } = story
      const task = await run()
      await wellAndKnown(story)
      const client = host.client<CsiClient>('csi-controller', 'hostpath')
      const { volume } = await client.createVolume(request('kept'))
      const killed = await pidOf(task)
      skipAll(story)

      process.kill(killed, 'SIGKILL')
      for (const type of types) {
        const event = await health.until((event) => ofType(type)(event) && because('task-exited')(event))
        expect(event).to.include({ healthy: false, final: false })
        const kept = await fingerprints.until((event) => ofType(type)(event) && !isHealthy(event))
        expect((kept.controller ?? kept.node)?.names).not.to.deep.equal([])
      }
      expect(await pidOf(task)).not.to.equal(killed)
      health.skip()
      fingerprints.skip()
      await wellAndKnown(story)
      expect(registry.fresh).to.deep.equal([])
      expect(await client.createVolume(request('kept'))).to.have.nested.property('volume.volumeId', volume.volumeId)
    }),
  )

  it(
    'is not held up by the socket that it leaves behind when it ends by SIGTERM',
    aGoStory(async (story) => {
      const { host, health, fingerprints, registry, tasks, run, order, pidOf } = story
      const task = await run({}, { restart: { minDelayMs: 30_000 } })
      await wellAndKnown(story)
      const { socketPath } = host.registry.list()[0]!.connection
      const ended = await pidOf(task)
      skipAll(story)

      process.kill(ended, 'SIGTERM')
      const exit = await tasks.until(({ kind }) => kind === 'exited')
      expect(exit).to.include({ code: null, signal: 'SIGTERM', willRestart: true })
      await health.until(because('task-exited'))
      expect(lstatSync(socketPath).isSocket()).to.equal(true)
      order(task, 'resume')
      expect(await pidOf(task)).not.to.equal(ended)
      health.skip()
      fingerprints.skip()
      await wellAndKnown(story)
      expect(registry.fresh).to.deep.equal([])
    }),
  )

  it(
    'deregisters it when it is stopped, with a last word of each of its halves',
    aGoStory(async (story) => {
      const { host, health, fingerprints, registry, restarts, tasks, run, order } = story
      const task = await run()
      await wellAndKnown(story)
      skipAll(story)

      order(task, 'stop')
      await tasks.until(({ kind }) => kind === 'stopped')
      for (const type of types) {
        const last = await health.until((event) => ofType(type)(event) && event.final)
        expect(last).to.include({ healthy: false, reason: 'stopping' })
        const fingerprint = await fingerprints.until((event) => ofType(type)(event) && event.final)
        expect(fingerprint).to.include({ healthy: false })
      }
      expect(kindsOf(registry.fresh)).to.deep.equal(['deregistered', 'deregistered'])
      expect(host.registry.list()).to.deep.equal([])
      expect(restarts.all).to.deep.equal([])

      health.skip()
      await run()
      await wellAndKnown(story)
    }),
  )

  it(
    'has two of them side by side, and only the one that is killed is told of',
    aGoStory(async (story) => {
      const { host, health, fingerprints, notes, run, pidOf } = story
      const one = await run()
      const { csiPlugin } = pluginTask({ csiPlugin: { id: 'other', type: 'monolith' } })
      await run({ driverName: 'other.csi.example' }, { allocId: 'b1', csiPlugin: csiPlugin! })
      await wellAndKnown(story, 'a1')
      await wellAndKnown(story, 'b1')
      const pid = await pidOf(one)
      skipAll(story)
      const [healthBefore, fingerprintsBefore] = [health.all.length, fingerprints.all.length]

      process.kill(pid, 'SIGKILL')
      await health.until((event) => ofAlloc('a1')(event) && !isHealthy(event))
      await pidOf(one)
      health.skip()
      fingerprints.skip()
      await wellAndKnown(story, 'a1')
      expect(health.all.slice(healthBefore).filter(ofAlloc('b1'))).to.deep.equal([])
      expect(fingerprints.all.slice(fingerprintsBefore).filter(ofAlloc('b1'))).to.deep.equal([])
      expect(notes.fresh.filter(({ task }) => task.allocId !== 'a1')).to.deep.equal([])
      const names = ['hostpath', 'other'].map((name) => host.client<CsiClient>('csi-node', name).nodeGetInfo())
      expect((await Promise.all(names)).map(({ nodeId }) => nodeId)).to.deep.equal([
        'hostpath.csi.example',
        'other.csi.example',
      ])
    }),
  )
})

function request(name: string): Parameters<CsiClient['createVolume']>[0] {
  return { name, volumeCapabilities: [{ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }] }
}
