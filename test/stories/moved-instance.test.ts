import { join } from 'node:path'
import { expect } from 'chai'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { inDirectory, isHealthy, kindsOf, pluginTask, withHost } from './support.js'

const ref = { type: 'csi-node', name: 'ebs', allocId: 'a1' }

describe('the same alloc registered again', () => {
  it('with another socket is updated, and everything is read from there', () =>
    inDirectory((directory) =>
      withHost(directory, {}, async ({ host, health, registry, fingerprints, keep }) => {
        const identity = { version: '1.0.0', provider: 'scripted.plugstream.example' }
        const places = ['one', 'two'].map((nodeId) => ({ nodeId, socketPath: join(directory, `${nodeId}.sock`) }))
        const plugins = []
        for (const { nodeId, socketPath } of places) {
          health.skip()
          fingerprints.skip()
          plugins.push(keep(await scriptedPlugin({ socketPath, script: { nodeId } })))
          await host.registry.register({ ...ref, ...identity, connection: { socketPath } })
          await health.until(isHealthy)
          const { node, plugin } = await fingerprints.until(isHealthy)
          expect(node?.id).to.equal(nodeId)
          expect(plugin.connection).to.deep.equal({ socketPath })
        }
        const calls = plugins[0]?.calls.length
        expect(kindsOf(registry.all)).to.deep.equal(['registered', 'updated'])
        expect(health.all.map(({ reason }) => reason)).to.deep.equal(['ready', 'socket-replaced', 'ready'])
        await plugins[1]?.waitForCall('NodeGetInfo')
        expect(plugins[0]?.calls.length).to.equal(calls)
      }),
    ))

  it('in another version is updated, over a new connection', () =>
    inDirectory((directory) =>
      withHost(directory, {}, async ({ health, registry, fingerprints, start, exited }) => {
        const task = pluginTask()
        for (const version of ['1.0.0', '2.0.0']) {
          health.skip()
          fingerprints.skip()
          const plugin = await start(task, { version, nodeId: `node-of-${version}` })
          await health.until(isHealthy)
          const { node } = await fingerprints.until(isHealthy)
          expect(node?.id).to.equal(`node-of-${version}`)
          exited(task, true)
          await plugin.close()
        }
        expect(registry.all.map(({ kind, plugin: { version } }) => `${kind} ${version}`)).to.deep.equal([
          'registered 1.0.0',
          'updated 2.0.0',
        ])
        expect(health.all.map(({ reason }) => reason)).to.deep.equal([
          'ready',
          'task-exited',
          'socket-replaced',
          'ready',
          'task-exited',
        ])
      }),
    ))

  it('without a word of who it is, is told by itself, and not doubted for it', () =>
    inDirectory((directory) =>
      withHost(directory, {}, async ({ host, health, registry, keep }) => {
        const socketPath = join(directory, 'a.sock')
        keep(await scriptedPlugin({ socketPath }))
        await host.registry.register({ ...ref, connection: { socketPath } })
        await health.until(isHealthy)
        expect(health.all).to.have.length(1)
        expect(kindsOf(registry.all)).to.deep.equal(['registered', 'updated'])
        expect(host.registry.get(ref)).to.include({ version: '1.0.0', provider: 'scripted.plugstream.example' })
      }),
    ))
})
