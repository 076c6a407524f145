import { of } from 'rxjs'
import type { CsiClient } from '../../../lib/csi/client.js'
import type { TaskSpec } from '../../../lib/task/driver.js'
import { processDriver } from '../../../lib/task/process-driver.js'
import { openHost } from '../../../streams/host.js'
import { runTasks } from '../../../streams/run-tasks.js'
import { scriptedPluginCommand, spawnScriptedPlugin } from '../../testing/spawn-scripted-plugin.js'
import { inTurn, timed, type Bench, type Rounds } from '../bench.js'
import { scratch } from '../scratch.js'

const spec = (allocId: string, upgrade: TaskSpec['upgrade']): TaskSpec => ({
  allocId,
  taskName: 'plugin',
  isolation: 'none',
  csiPlugin: { id: 'bench', type: 'node' },
  upgrade,
  ...scriptedPluginCommand(),
})

/** The longest of calls that are made one after the other for as long as work takes, in ms. */
async function longestCall(client: CsiClient, work: Promise<unknown>): Promise<number> {
  let longestMs = 0
  const state = { isOver: false }
  const over = work.finally(() => (state.isOver = true))
  while (!state.isOver) longestMs = Math.max(longestMs, await timed(() => client.getPluginInfo()))
  await over
  return longestMs
}

function upgrading(
  upgrade: 'overlap' | 'exclusive',
  limit: string,
  bare: (client: CsiClient, directory: string) => Promise<number>,
): Bench {
  return {
    name: `i-upgrade-${upgrade}`,
    ours: 'the longest time that a call took while its plugin was upgraded',
    limit,
    unit: 'ms',
    rounds: 10,
    open: async (): Promise<Rounds> => {
      const { directory, scope } = scratch()
      let count = 0
      const host = await openHost({
        stateDir: `${directory}/state`,
        task$: (ports) => runTasks(of(spec(`alloc-${count}`, upgrade)), processDriver(), ports),
        timing: { bakeMs: 100 },
      })
      scope.add(() => host.close())
      await host.waitFor('csi-node', 'bench', { healthy: true })
      const client = host.client<CsiClient>('csi-node', 'bench')
      return {
        round: inTurn(
          () => longestCall(client, host.replace(spec(`alloc-${++count}`, upgrade))),
          () => bare(client, directory),
        ),
        close: () => scope.close(),
      }
    },
  }
}

export const upgrades: readonly Bench[] = [
  upgrading('overlap', 'the longest one in a second without an upgrade', (client) =>
    longestCall(client, new Promise((resolve) => setTimeout(resolve, 1_000))),
  ),
  upgrading(
    'exclusive',
    'the end of one such process, and the start of another until it listens',
    async (_, directory) => {
      const init = { socketPath: `${directory}/bare.sock` }
      const before = await spawnScriptedPlugin(init)
      const restart = async () => {
        before.kill('SIGTERM')
        await before.exit
        return spawnScriptedPlugin(init)
      }
      let after: Awaited<ReturnType<typeof restart>> | undefined
      const tookMs = await timed(async () => (after = await restart()))
      await after?.close()
      return tookMs
    },
  ),
]
