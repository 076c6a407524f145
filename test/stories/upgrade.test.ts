import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import type { PlugstreamError } from '../../lib/errors.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import { isHealthy, ofAlloc } from './support.js'
import { anUpgrade, controller, happened, phases, pluginSpec, upgradeTiming } from './upgrade-support.js'

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

  it(
    'leaves it to plugins that elect a leader which of them serves, and holds calls back meanwhile',
    anUpgrade(async ({ host, health, replaced, run, tasks, stateDir }) => {
      const program = fileURLToPath(new URL('./programs/elected-plugin.ts', import.meta.url))
      const elected = (allocId: string, version: string): TaskSpec => ({
        ...pluginSpec(allocId, {}, controller),
        command: [process.execPath, '--import', 'tsx/esm', program, join(stateDir, 'leader'), version],
        upgrade: 'elected',
      })
      run(elected('old', '1'))
      await health.until(isHealthy)
      const client = host.client<CsiClient>('csi-controller', 'ebs')
      tasks.skip()
      const upgrade = host.replace(elected('new', '2'))
      await tasks.until(({ kind }) => kind === 'stopping')
      expect((await client.getPluginInfo()).vendorVersion).to.equal('2')
      await upgrade
      expect(phases(replaced.all)).to.deep.equal(['starting', 'handing-over', 'baking', 'replaced'])
      expect(happened(tasks.fresh)).to.deep.equal([
        'new prestart',
        'new started',
        'old stopping',
        'old exited',
        'old stopped',
      ])
    }),
  )

  for (const overrides of [controller, {}])
    it(
      `goes back to the old ${overrides === controller ? 'controller' : 'node plugin'} where the new one dies within its bake time`,
      anUpgrade(
        async ({ host, health, replaced, run, tasks }) => {
          const type = overrides === controller ? 'csi-controller' : 'csi-node'
          run(pluginSpec('old', { version: '1' }, overrides))
          await health.until(isHealthy)
          const upgrade = host
            .replace(pluginSpec('new', { version: '2' }, overrides))
            .catch((failure: unknown) => failure)
          const begun = await tasks.until(({ kind, task }) => kind === 'started' && task.allocId === 'new')
          await replaced.until(({ phase }) => phase === 'baking')
          if (begun.kind === 'started') process.kill(begun.pid!, 'SIGKILL')
          const failure = (await upgrade) as PlugstreamError
          expect(failure).to.include({ code: 'ERR_PLUGIN_NOT_READY', retryable: true })
          expect(failure.message).to.match(/^plugin "ebs" was not replaced: /)
          expect(host.registry.instances(type, 'ebs').map(({ allocId }) => allocId)).to.deep.equal(['old'])
          expect((await host.client<CsiClient>(type, 'ebs').getPluginInfo()).vendorVersion).to.equal('1')
          expect(happened(tasks.all).filter((one) => one === 'new started')).to.have.length(1)
        },
        { timing: { ...upgradeTiming, bakeMs: 60_000 } },
      ),
    )

  it(
    'goes back at once where the new one cannot be run',
    anUpgrade(async ({ host, health, run, tasks }) => {
      run(pluginSpec('old', {}))
      await health.until(isHealthy)
      const no = (overrides: object): Promise<unknown> =>
        host.replace(pluginSpec('new', {}, { upgrade: 'overlap', ...overrides })).catch((failure: unknown) => failure)
      expect(await no({ command: [] })).to.include({ code: 'ERR_OPTION_INVALID' })
      const failure = await no({ command: ['/no/such/program'] })
      expect(failure).to.include({ code: 'ERR_PLUGIN_NOT_READY' })
      expect((failure as Error).message).to.contain('the task of alloc new could not begin: ')
      expect(happened(tasks.all).filter((one) => one.startsWith('old'))).to.deep.equal(['old prestart', 'old started'])
    }),
  )
})
