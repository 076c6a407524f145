import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { PluginTask } from '../../lib/task/task.js'
import { toyKind, type ToyAnswers, type ToyClient } from '../fakes/toy-kind.js'
import { toyPlugin } from '../fakes/toy-plugin.js'
import { because, inDirectory, isHealthy, reasonsOf, shortTiming, withHost } from './support.js'

describe('a plugin kind that is not CSI', () => {
  const task: PluginTask = {
    allocId: 'a1',
    taskName: 'box',
    isolation: 'none',
    plugin: { kind: 'toy', id: 'train' },
  }
  const init = { kinds: [toyKind], timing: shortTiming }

  it('has the whole river: prepared, registered, watched, read, called, restored and gone', () =>
    inDirectory(async (stateDir) => {
      const answers: ToyAnswers = {
        ready: false,
        who: { provider: 'toy.example', version: '1.0.0' },
        toys: ['WHISTLE'],
      }
      let endpoint = ''
      await withHost(stateDir, init, async ({ host, tell, health, registry, fingerprints, notes, keep }) => {
        tell('prestart', task)
        const { env, socketPath, mounts } = await host.prepare(task)
        expect(env).to.deep.equal({ TOY_ENDPOINT: `unix://${socketPath}` })
        expect(mounts.map(({ taskPath }) => taskPath)).to.deep.equal(['/toy', '/toys', '/dev'])
        endpoint = env['TOY_ENDPOINT'] ?? ''
        keep(await toyPlugin(endpoint, answers))
        tell('started', task)
        answers.ready = true
        await health.until(isHealthy)
        const { node, plugin } = await fingerprints.until(isHealthy)
        expect(node?.names).to.deep.equal(['WHISTLE'])
        expect(plugin).to.include({ type: 'toy', name: 'train', provider: 'toy.example', version: '1.0.0' })
        expect(await host.client<ToyClient>('toy', 'train').toys()).to.deep.equal(['WHISTLE'])
        expect(await host.registry.dispense<ToyClient>('toy', 'train').toys()).to.deep.equal(['WHISTLE'])

        answers.ready = false
        await health.until(because('not-ready'))
        answers.ready = true
        await notes.untilAll((all) => all[2])
        expect(notes.all.map(({ kind, reason }) => `${kind} ${reason}`)).to.deep.equal([
          'plugin-healthy ready',
          'plugin-unhealthy not-ready',
          'plugin-healthy ready',
        ])
        expect(registry.all).to.have.length(1)
      })

      const again = await toyPlugin(endpoint, { ...answers, who: { provider: 'toy.example', version: '2.0.0' } })
      try {
        await withHost(stateDir, { ...init, task$: NEVER }, async ({ health, registry, fingerprints, host }) => {
          expect(registry.all[0]).to.deep.include({ restored: true })
          await fingerprints.until(isHealthy)
          expect(registry.all.map(({ kind, plugin: { version } }) => `${kind} ${version}`)).to.deep.equal([
            'registered 1.0.0',
            'updated 2.0.0',
          ])
          await again.close()
          await health.until(because('socket-missing'))
          await host.registry.deregister({ type: 'toy', name: 'train', allocId: 'a1' })
          expect(await health.until(({ final }) => final)).to.include({ reason: 'deregistered' })
          expect(reasonsOf(health.all)).to.include.members(['ready', 'socket-missing', 'deregistered'])
          expect(host.registry.list()).to.deep.equal([])
        })
      } finally {
        await again.close()
      }
    }))

  it('that is not given is not known', () =>
    inDirectory((stateDir) =>
      withHost(stateDir, {}, async ({ host }) => {
        expect(() => host.client('toy', 'train'))
          .to.throw()
          .with.include({ code: 'ERR_PLUGIN_UNKNOWN' })
        const refusal: unknown = await host.prepare(task).catch((failure: unknown) => failure)
        expect(refusal).to.include({ code: 'ERR_OPTION_INVALID' })
      }),
    ))
})
