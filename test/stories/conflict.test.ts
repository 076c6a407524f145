import { expect } from 'chai'
import { aStory, isHealthy, pluginTask } from './support.js'

describe('two tasks of one alloc that claim one plugin', () => {
  const first = pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } })
  const second = pluginTask({ taskName: 'other' })

  it(
    'never take it from each other: the second is refused, until the first has stopped',
    aStory({}, async ({ host, health, registry, notes, tell, start }) => {
      const plugin = await start(first)
      await health.until(({ plugin: { type }, healthy }) => type === 'csi-node' && healthy)

      const refusal: unknown = await host.prepare(second).catch((failure: unknown) => failure)
      expect(refusal).to.include({ code: 'ERR_PLUGIN_CONFLICT' })
      expect((refusal as Error).message).to.equal(
        'task other of alloc a1 claims csi-node ebs, which task driver of the same alloc serves',
      )
      tell('prestart', second)
      tell('started', second)
      const note = await notes.until(({ task: { taskName } }) => taskName === second.taskName)
      expect(note).to.include({ kind: 'plugin-unhealthy', message: (refusal as Error).message })
      tell('stopping', second)
      tell('stopped', second)
      expect(registry.all.map(({ kind }) => kind)).to.deep.equal(['registered', 'registered'])
      expect(host.registry.instances('csi-node', 'ebs')[0]?.options['taskName']).to.equal('driver')

      // In another alloc it is another instance.
      await host.prepare(pluginTask({ taskName: 'other', allocId: 'a2' }))

      tell('stopping', first)
      await plugin.close()
      tell('stopped', first)
      health.skip()
      await start(second)
      await health.until(isHealthy)
      expect(host.registry.list('csi-node')[0]?.options['taskName']).to.equal('other')
    }),
  )
})
