import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import { socketPathFor } from '../../lib/task/task-paths.js'
import type { PluginTask } from '../../lib/task/task.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import { because, inDirectory, isHealthy, ofAlloc, ofType, pluginTask, withHost, type Story } from './support.js'

const monolith = pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } })
const tasks = [monolith, pluginTask({ allocId: 'a2' }), pluginTask({ allocId: 'a3' })] as const
const refs = [
  { type: 'csi-controller', name: 'ebs', allocId: 'a1' },
  { type: 'csi-node', name: 'ebs', allocId: 'a1' },
  { type: 'csi-node', name: 'ebs', allocId: 'a2' },
  { type: 'csi-node', name: 'ebs', allocId: 'a3' },
]
const timing = { restoreGraceMs: 200, unhealthyBeatMs: 50 }

describe('a host that is opened again', () => {
  let plugins: ScriptedPlugin[]

  /** A host that came to its end; its plugins live on. */
  async function before(stateDir: string): Promise<Pick<Story, 'registry' | 'nodes'>> {
    for (const { allocId, taskName } of tasks) {
      const socketPath = socketPathFor(stateDir, 'csi', { id: 'ebs', socketName: 'csi.sock' }, { allocId, taskName })
      mkdirSync(dirname(socketPath), { recursive: true })
      plugins.push(await scriptedPlugin({ socketPath }))
    }
    let earlier: Story | undefined
    await withHost(stateDir, {}, async (story) => {
      earlier = story
      // One after the other, so that their order is known.
      for (const task of tasks) {
        story.tell('started', task)
        await story.fingerprints.until((event) => ofAlloc(task.allocId)(event) && ofType('csi-node')(event))
      }
    })
    if (!earlier) throw new Error('it has no story')
    return earlier
  }

  beforeEach(() => {
    plugins = []
  })
  afterEach(() => Promise.all(plugins.map((plugin) => plugin.close())))

  it('has every instance as it was, in order, and finds each alive from its stored socket alone', () =>
    inDirectory(async (stateDir) => {
      const earlier = await before(stateDir)
      const asked = plugins.map(({ calls }) => calls.length)

      await withHost(stateDir, { task$: NEVER }, async ({ host, health, registry, fingerprints, nodes }) => {
        const restored = registry.all.slice(0, refs.length)
        expect(restored.map(({ plugin: { type, name, allocId } }) => ({ type, name, allocId }))).to.deep.equal(refs)
        expect(restored.map(({ plugin }) => plugin)).to.deep.equal(earlier.registry.all.map(({ plugin }) => plugin))
        for (const event of restored) expect(event).to.include({ kind: 'registered', restored: true })
        const seqs = [...earlier.registry.all, ...restored].map(({ seq }) => seq)
        expect(seqs).to.deep.equal([...new Set(seqs)].sort((a, b) => a - b))

        const [first] = nodes.all
        expect(first?.instances.map(({ health: { healthy, reason } }) => ({ healthy, reason }))).to.deep.equal(
          refs.map(() => ({ healthy: false, reason: 'unknown' })),
        )
        expect(first?.instances.map(({ current }) => current)).to.deep.equal([true, false, false, true])

        for (const { allocId, type } of refs) {
          const isIt = (event: { plugin: { allocId: string; type: string }; healthy: boolean }): boolean =>
            event.plugin.allocId === allocId && event.plugin.type === type && event.healthy
          await health.until(isIt)
          await fingerprints.until(isIt)
        }
        expect(health.all.filter(because('unknown'))).to.deep.equal([])
        expect(host.registry.list('csi-node')).to.deep.equal([restored[3]?.plugin])
        plugins.forEach(({ calls }, at) => expect(calls.length).to.be.greaterThan(asked[at] ?? 0))
        expect(registry.all).to.have.length(refs.length)
      })
    }))

  it('goes on with the connection where the task of a restored plugin is taken over, and knows of its end', () =>
    inDirectory(async (stateDir) => {
      await before(stateDir)
      await withHost(stateDir, {}, async ({ health, task$, tell, exited }) => {
        const isIt = (event: { plugin: { allocId: string; type: string } }): boolean =>
          ofAlloc('a1')(event as never) && ofType('csi-node')(event as never)
        await health.until((event) => isIt(event) && event.healthy)
        tell('prestart', monolith)
        task$.next({ kind: 'started', task: monolith, at: Date.now(), adopted: true })
        exited(monolith, true)
        await health.until((event) => isIt(event) && event.reason === 'task-exited')
        expect(health.all.filter(isIt).map(({ reason }) => reason)).to.deep.equal(['ready', 'task-exited'])
      })
    }))

  it('gives up those that are dead and that no task claims, in time', () =>
    inDirectory(async (stateDir) => {
      await before(stateDir)
      await plugins[1]?.close()
      await plugins[2]?.close()

      await withHost(stateDir, { timing }, async ({ host, health, registry, tell }) => {
        const claimed: PluginTask = tasks[2]
        tell('prestart', claimed)
        await health.until((event) => ofAlloc('a2')(event) && because('socket-missing')(event))

        const gone = await registry.until(({ kind }) => kind === 'deregistered')
        expect(gone).to.deep.include({ reason: 'lost', restored: false })
        expect(gone.plugin.allocId).to.equal('a2')
        expect(await health.until(because('lost'))).to.include({ healthy: false, final: true })
        // The one that is claimed was dead for as long.
        expect(host.registry.instances('csi-node', 'ebs').map(({ allocId }) => allocId)).to.deep.equal(['a3', 'a1'])

        // One that answered first is not safe for ever.
        registry.skip()
        await plugins[0]?.close()
        const later = await registry.until(({ plugin }) => plugin.type === 'csi-node')
        expect(later).to.include({ kind: 'deregistered', reason: 'lost' })
        expect(later.plugin.allocId).to.equal('a1')
      })
    }))

  it('goes on with the task of a restored instance where the one before it stopped', () =>
    inDirectory(async (stateDir) => {
      await before(stateDir)
      await withHost(stateDir, {}, async ({ host, health, registry, start, tell }) => {
        const isIt = ofAlloc('a2')
        await health.until((event) => isIt(event) && isHealthy(event))
        await plugins[1]?.close()
        await health.until((event) => isIt(event) && !isHealthy(event))
        registry.skip()
        health.skip()
        await start(tasks[1], { version: '2.0.0' })
        const updated = await registry.until(isIt)
        expect(updated).to.deep.include({ kind: 'updated', restored: false })
        expect(updated.plugin.version).to.equal('2.0.0')
        await health.until((event) => isIt(event) && isHealthy(event))
        expect(host.registry.instances('csi-node', 'ebs').map(({ allocId }) => allocId)).to.deep.equal([
          'a3',
          'a2',
          'a1',
        ])
        registry.skip()
        tell('stopping', tasks[1])
        expect(await registry.until(isIt)).to.deep.include({ kind: 'deregistered', reason: 'stopping' })
      })
    }))
})
