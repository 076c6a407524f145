import { expect } from 'chai'
import { csiKind } from '../../lib/csi/kind.js'
import type { PluginKind } from '../../lib/plugin/kind.js'
import { aStory, because, isHealthy, ofType, pluginTask } from './support.js'

describe('a monolith', () => {
  const task = pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } })

  it(
    'is two registrations over one connection, and both go with its task',
    aStory({}, async ({ host, health, registry, fingerprints, start, tell, restarts }) => {
      const plugin = await start(task)
      for (const type of ['csi-controller', 'csi-node']) {
        await health.until((event) => ofType(type)(event) && isHealthy(event))
        await fingerprints.until((event) => ofType(type)(event) && isHealthy(event))
      }
      expect(registry.all.map(({ kind, plugin: { type } }) => `${kind} ${type}`)).to.deep.equal([
        'registered csi-controller',
        'registered csi-node',
      ])
      expect(fingerprints.all.find(ofType('csi-controller'))).to.have.property('controller')
      expect(fingerprints.all.find(ofType('csi-node'))).to.have.nested.property('node.id', 'node-1')
      registry.skip()

      tell('stopping', task)
      for (const type of ['csi-controller', 'csi-node']) {
        const last = await health.until((event) => ofType(type)(event) && because('stopping')(event))
        expect(last).to.include({ healthy: false, final: true })
        const fingerprint = await fingerprints.until((event) => ofType(type)(event) && event.final)
        expect(fingerprint).to.include({ healthy: false })
      }
      expect(registry.fresh.map(({ kind, reason, plugin: { type } }) => `${kind} ${type} ${reason}`)).to.deep.equal([
        'deregistered csi-controller stopping',
        'deregistered csi-node stopping',
      ])
      expect(host.registry.list()).to.deep.equal([])
      expect(restarts.all).to.deep.equal([])
      await plugin.close()
      tell('stopped', task)
    }),
  )

  const csi = csiKind()
  const halfRefused: PluginKind = {
    ...csi,
    configure: (given) => ({ ...csi.configure(given), types: ['csi-controller', ''] }),
  }

  it(
    'has the first half taken back where the second is refused',
    aStory({ kinds: [halfRefused] }, async ({ host, registry, notes, start }) => {
      await start(task)
      const note = await notes.until(({ kind }) => kind === 'plugin-unhealthy')
      expect(note.message).to.equal('type is ""; it must be a text that is not empty')
      await registry.until(({ kind }) => kind === 'deregistered')
      expect(registry.all.map(({ kind, plugin: { type } }) => `${kind} ${type}`)).to.deep.equal([
        'registered csi-controller',
        'deregistered csi-controller',
      ])
      expect(host.registry.list()).to.deep.equal([])
    }),
  )
})
