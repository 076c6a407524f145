import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { isHealthy, ofAlloc } from './support.js'
import { anUpgrade, controller, happened, phases, pluginSpec } from './upgrade-support.js'

describe('replacing a plugin', () => {
  it(
    'starts a controller beside the old one, which goes when the new one has stayed well',
    anUpgrade(async ({ host, health, registry, replaced, run, tasks }) => {
      run(pluginSpec('old', { version: '1' }, controller))
      await health.until(isHealthy)
      tasks.skip()
      const [instance] = await host.replace(pluginSpec('new', { version: '2' }, controller))
      expect(instance).to.include({ allocId: 'new', version: '2', type: 'csi-controller' })
      expect(phases(replaced.all)).to.deep.equal(['starting', 'baking', 'stopping', 'replaced'])
      expect(happened(tasks.fresh)).to.deep.equal([
        'new prestart',
        'new started',
        'old stopping',
        'old exited',
        'old stopped',
      ])
      expect(
        registry.all.map(({ plugin, kind, current }) => `${plugin.allocId} ${kind} ${current?.allocId}`),
      ).to.deep.equal(['old registered old', 'new registered new', 'old deregistered new'])
      expect(health.all.filter(ofAlloc('new')).map(({ reason }) => reason)).to.deep.equal(['ready'])
    }),
  )

  it(
    'stops a node plugin before the new one starts, and holds calls back until that serves',
    anUpgrade(async ({ host, health, replaced, run, tasks }) => {
      run(pluginSpec('old', { version: '1' }))
      await health.until(isHealthy)
      tasks.skip()
      const client = host.client<CsiClient>('csi-node', 'ebs')
      const upgrade = host.replace(pluginSpec('new', { version: '2' }))
      await tasks.until(({ kind }) => kind === 'stopping')
      expect((await client.getPluginInfo()).vendorVersion).to.equal('2')
      await upgrade
      expect(phases(replaced.all)).to.deep.equal(['handing-over', 'starting', 'baking', 'replaced'])
      expect(happened(tasks.fresh)).to.deep.equal([
        'old stopping',
        'old exited',
        'old stopped',
        'new prestart',
        'new started',
      ])
    }),
  )
})
