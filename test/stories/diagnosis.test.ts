import { format } from 'node:util'
import debug from 'debug'
import { expect } from 'chai'
import { concat, NEVER, of } from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import { processDriver } from '../../lib/task/process-driver.js'
import { runTasks } from '../../streams/run-tasks.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { aStory, isHealthy, pluginTask, shortTiming } from './support.js'

/** Collects what would be printed, without time and color. */
async function printed(tell: (lines: readonly string[]) => Promise<void>): Promise<void> {
  const lines: string[] = []
  const { log } = debug
  const enabled = debug.disable()
  debug.log = (...given: unknown[]) => lines.push(withoutTime(format(...given)))
  debug.enable('plugstream:*')
  try {
    await tell(lines)
  } finally {
    debug.disable()
    debug.enable(enabled)
    debug.log = log
  }
}

function withoutTime(line: string): string {
  return line
    .replaceAll(/\x1b\[[\d;]*m/g, '')
    .replace(/^\S*Z /, '')
    .trim()
}

const secret = 'hunter2'

describe('DEBUG=plugstream:*', () => {
  const task = pluginTask({ csiPlugin: { id: 'ebs', type: 'node' }, env: { PASSWORD: secret } })

  it('prints one line an edge, and none a beat', () =>
    printed((lines) =>
      aStory({ timing: shortTiming }, async ({ start, tell, health, fingerprints, notes }) => {
        const plugin = await start(task)
        await fingerprints.until(isHealthy)
        await notes.until(() => true)
        const before = lines.length
        await plugin.waitForCall('Probe', 5)
        expect(lines.slice(before)).to.deep.equal([])
        await plugin.change({ ready: false })
        await health.until((event) => !isHealthy(event))
        await notes.until(({ kind }) => kind === 'plugin-unhealthy')
        await fingerprints.until((event) => !isHealthy(event))
        tell('stopping', task)
        await fingerprints.until(({ final }) => final)
        expect(lines).to.have.members([
          'plugstream:registry restored 0, 0 unreadable',
          'plugstream:registry 1 csi-node ebs a1 1.0.0 registered, current a1',
          'plugstream:health csi-node ebs a1 healthy, ready, ready',
          'plugstream:task a1 driver plugin-healthy, the plugin is ready',
          'plugstream:fingerprint csi-node ebs a1 healthy, node node-1 GET_VOLUME_STATS STAGE_UNSTAGE_VOLUME',
          'plugstream:health csi-node ebs a1 unhealthy, not-ready, it answers that it is not ready yet',
          'plugstream:task a1 driver plugin-unhealthy, csi-node ebs: it answers that it is not ready yet',
          'plugstream:fingerprint csi-node ebs a1 unhealthy, node node-1 GET_VOLUME_STATS STAGE_UNSTAGE_VOLUME',
          'plugstream:registry 2 csi-node ebs a1 1.0.0 deregistered, stopping, current none',
          'plugstream:health csi-node ebs a1 unhealthy, stopping, its task is stopping, final',
          'plugstream:fingerprint csi-node ebs a1 unhealthy, node node-1 GET_VOLUME_STATS STAGE_UNSTAGE_VOLUME, final',
        ])
      })(),
    ))

  it('prints no secret of a task or of a call, and nothing of a plugin as a format', () =>
    printed((lines) =>
      aStory(
        {
          task$: (ports) => {
            const { command, env } = scriptedPluginCommand({
              version: '100%d',
              replies: {
                NodeStageVolume: [{ status: 'INTERNAL', message: `mount -o password=${secret}`, repeat: true }],
              },
            })
            const spec = {
              ...task,
              command: [...command, secret] as [string, ...string[]],
              env: { ...env, ...task.env },
            }
            return runTasks(concat(of(spec), NEVER), processDriver(), ports)
          },
        },
        async ({ host, health, fingerprints, notes }) => {
          await fingerprints.until(isHealthy)
          const failure: unknown = await host
            .client<CsiClient>('csi-node', 'ebs')
            .nodeStageVolume({
              volumeId: 'v',
              stagingTargetPath: '/x',
              volumeCapability: { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' },
              secrets: { password: secret },
            })
            .catch((thrown: unknown) => thrown)
          expect(failure).to.include({ code: 'ERR_CSI_RPC' })
          await notes.until(() => true)
          expect(health.all).to.have.length(1)
          expect(lines.join('\n')).to.contain('csi-node ebs a1 100%d registered').and.not.contain(secret)
        },
      )(),
    ))
})
