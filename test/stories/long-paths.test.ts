import { join } from 'node:path'
import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { socketPathLimitBytes as limitBytes } from '../../lib/defaults.js'
import type { PluginTask } from '../../lib/task/task.js'
import { aStory, inDirectory, isHealthy, pluginTask, withHost } from './support.js'

/** A task whose natural socket path has so many bytes. */
function taskOfLength(stateDir: string, bytes: number, end = ''): PluginTask {
  const rest = Buffer.byteLength(join(stateDir, 'csi/plugins', '', 'driver/csi.sock')) + 1
  return pluginTask({
    allocId: 'a'.repeat(bytes - rest - end.length) + end,
    csiPlugin: { id: `ebs${end}`, type: 'node' },
  })
}

describe('a socket path', () => {
  it(
    `of ${limitBytes} bytes is used as it is, and a longer one is made short`,
    aStory({}, async ({ host, stateDir, start, health }) => {
      const fits = taskOfLength(stateDir, limitBytes)
      const { socketPath } = await host.prepare(fits)
      expect(Buffer.byteLength(socketPath)).to.equal(limitBytes)
      expect(socketPath).to.contain('/csi/plugins/')
      await start(fits)
      await health.until(isHealthy)

      const short = await host.prepare(taskOfLength(stateDir, limitBytes + 1))
      expect(short.socketPath).to.match(/\/s\/[0-9a-z]+\/csi\.sock$/)
      expect(short.mounts[0]?.hostPath).to.equal(short.socketPath.replace(/\/csi\.sock$/, ''))
    }),
  )

  it(
    'never leads to the plugin of another that is the same as far as a socket path goes',
    aStory({}, async ({ host, stateDir, start, fingerprints }) => {
      const tasks = ['1', '2'].map((end) => taskOfLength(stateDir, 150, end))
      const natural = tasks.map(({ allocId }) => join(stateDir, 'csi/plugins', allocId, 'driver/csi.sock'))
      expect(new Set(natural.map((path) => path.slice(0, limitBytes))).size).to.equal(1)
      for (const task of tasks) {
        const { id } = task.csiPlugin ?? { id: '' }
        await start(task, { nodeId: `node of ${id}` })
        await fingerprints.until(({ plugin, healthy }) => plugin.name === id && healthy)
      }
      for (const id of ['ebs1', 'ebs2']) {
        const { nodeId } = await host.client<CsiClient>('csi-node', id).nodeGetInfo()
        expect(nodeId).to.equal(`node of ${id}`)
      }
    }),
  )

  it('that cannot be made short enough is refused, with its length and the limit', () =>
    inDirectory((directory) => {
      const stateDir = join(directory, 'd'.repeat(100))
      return withHost(stateDir, {}, async ({ host, tell, notes }) => {
        const refusal: unknown = await host.prepare(pluginTask()).catch((failure: unknown) => failure)
        expect(refusal).to.include({ code: 'ERR_SOCKET_PATH' })
        expect((refusal as Error).message).to.match(/ has 1\d\d bytes; the limit is \d+: use a shorter stateDir$/)
        tell('started', pluginTask())
        expect((await notes.until(() => true)).message).to.equal((refusal as Error).message)
      })
    }))

  it(
    'given by hand is refused where it is too long, with its length and the limit',
    aStory({}, async ({ host }) => {
      const plugin = { type: 'csi-node', name: 'ebs', allocId: 'a1' }
      const register = async (bytes: number): Promise<unknown> =>
        host.registry
          .register({ ...plugin, connection: { socketPath: `/${'s'.repeat(bytes - 1)}` } })
          .then(() => undefined)
          .catch((failure: unknown) => failure)
      expect(await register(limitBytes + 1)).to.deep.include({
        code: 'ERR_SOCKET_PATH',
        details: { field: 'connection.socketPath', lengthBytes: limitBytes + 1, limitBytes },
      })
      expect(await register(limitBytes)).to.equal(undefined)
    }),
  )
})
