import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { aStory, because, isHealthy, kindsOf, ofAlloc, pluginTask } from './support.js'

describe('the task of a plugin', () => {
  const task = pluginTask()

  it(
    'that stops for good takes its socket directory with it, and leaves the volume root',
    aStory({}, async ({ host, health, registry, start, tell }) => {
      const { mounts } = await host.prepare(task)
      const [sockets = '', volumes = ''] = mounts.map(({ hostPath }) => hostPath)
      const plugin = await start(task)
      await health.until(isHealthy)
      tell('stopping', task)
      await registry.until(({ kind }) => kind === 'deregistered')
      await plugin.close()
      tell('stopped', task)
      await host.close() // it is done by then
      expect(existsSync(sockets)).to.equal(false)
      expect(existsSync(dirname(sockets))).to.equal(false)
      expect(existsSync(volumes)).to.equal(true)
      expect(kindsOf(registry.all)).to.deep.equal(['registered', 'deregistered'])
    }),
  )

  it(
    'that comes again under its name at once finds its directory, whatever the end of the one before it does',
    aStory({}, async ({ host, health, start, tell }) => {
      for (const version of ['1', '2', '3', '4']) {
        health.skip()
        const plugin = await start(task, { version })
        const { plugin: info } = await health.until(isHealthy)
        expect(info.version).to.equal(version)
        await plugin.close()
        tell('stopping', task)
        tell('stopped', task)
        // The next one is prepared in the same turn.
      }
      await host.prepare(task)
    }),
  )

  it(
    'that exits for good is deregistered at once',
    aStory({}, async ({ health, registry, fingerprints, start, exited }) => {
      await start(task)
      await fingerprints.until(isHealthy)
      exited(task, false)
      expect(await health.until(({ final }) => final)).to.include({ healthy: false, reason: 'task-exited' })
      expect(await fingerprints.until(({ final }) => final)).to.include({ healthy: false })
      expect(await registry.until(({ kind }) => kind === 'deregistered')).to.include({ reason: 'task-exited' })
    }),
  )

  it(
    'that exited and will start again is unhealthy, though something answers on its socket',
    aStory({}, async ({ health, registry, host, fingerprints, notes, start, exited, tell }) => {
      const impostor = await start(task)
      await fingerprints.until(isHealthy)
      exited(task, true)
      const event = await health.until(because('task-exited'))
      expect(event).to.include({ healthy: false, final: false, description: 'the task exited with code 1' })
      const calls = impostor.calls.length
      tell('prestart', task)
      // Another one comes, is ready, and by then this one would have been asked.
      await start(pluginTask({ allocId: 'a2' }))
      await health.until((one) => ofAlloc('a2')(one) && isHealthy(one))
      expect(impostor.calls.length).to.equal(calls)
      expect(health.all.filter(ofAlloc('a1')).map(({ reason }) => reason)).to.deep.equal(['ready', 'task-exited'])

      const refusal: unknown = await host.prepare(task).catch((failure: unknown) => failure)
      expect(refusal).to.include({ code: 'ERR_SOCKET', retryable: true })

      health.skip()
      tell('started', task)
      await health.until((one) => ofAlloc('a1')(one) && isHealthy(one))
      expect(kindsOf(registry.all.filter(ofAlloc('a1')))).to.deep.equal(['registered'])
      await notes.untilAll((all) => all.filter((note) => note.task.allocId === 'a1')[2])
    }),
  )

  it(
    'that comes back as another plugin takes back what it was before',
    aStory({}, async ({ host, health, registry, start, exited, tell }) => {
      const plugin = await start(pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith' } }))
      await health.until(({ plugin: { type }, healthy }) => type === 'csi-node' && healthy)
      exited(task, true)
      await plugin.close()
      const other = pluginTask({ csiPlugin: { id: 'ebs', type: 'controller' } })
      health.skip()
      registry.skip()
      tell('prestart', other)
      const gone = await registry.until(() => true)
      expect(gone).to.include({ kind: 'deregistered', reason: 'configuration changed' })
      expect(gone.plugin.type).to.equal('csi-node')
      await start(other)
      await health.until(isHealthy)
      expect(host.registry.list().map(({ type }) => type)).to.deep.equal(['csi-controller'])
    }),
  )

  it(
    'that is no plugin passes through untouched',
    aStory({}, async ({ host, tell, exited, notes, registry, start, health }) => {
      const plain = { allocId: 'p', taskName: 'web', isolation: 'none' } as const
      expect(await host.prepare(plain)).to.deep.equal({ socketPath: '', env: {}, mounts: [] })
      tell('prestart', plain)
      tell('started', plain)
      exited(plain, true)
      tell('stopping', plain)
      tell('stopped', plain)
      await start(task)
      await health.until(isHealthy)
      await notes.until(() => true)
      expect(notes.all.filter((note) => note.task.allocId === 'p')).to.deep.equal([])
      expect(registry.all.map(({ plugin }) => plugin.allocId)).to.deep.equal(['a1'])
    }),
  )
})
