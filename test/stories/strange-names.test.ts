import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import { inDirectory, isHealthy, pluginTask, withHost } from './support.js'

const names = [
  'a/b',
  'a_b',
  'a%2Fb',
  '..',
  '.',
  '../../etc',
  ' ',
  'a\nb',
  'x'.repeat(300),
  'ünï©ødé-☃',
  'ＡＢＣ',
  'A',
  'a',
]

describe('plugins with strange names', () => {
  it('live each in directories of their own below the state directory, and are called by their names', () =>
    inDirectory(async (stateDir) => {
      await withHost(stateDir, {}, async ({ host, start, fingerprints }) => {
        const paths = new Set<string>()
        for (const [at, name] of names.entries()) {
          const task = pluginTask({ allocId: name, taskName: name, csiPlugin: { id: name, type: 'node' } })
          const { mounts, socketPath } = await host.prepare(task)
          expect(socketPath.startsWith(stateDir + sep)).to.equal(true)
          for (const { hostPath } of mounts.slice(0, 2)) {
            expect(realpathSync(hostPath)).to.equal(hostPath)
            expect(hostPath.startsWith(stateDir + sep)).to.equal(true)
            paths.add(hostPath)
          }
          await start(task, { nodeId: `node-${at}` })
          await fingerprints.until((event) => event.plugin.name === name && isHealthy(event))
        }
        expect(paths.size).to.equal(2 * names.length)
        for (const [at, name] of names.entries()) {
          const { nodeId } = await host.client<CsiClient>('csi-node', name).nodeGetInfo()
          expect(nodeId).to.equal(`node-${at}`)
        }
      })
      await withHost(stateDir, { task$: NEVER }, async ({ host, problems }) => {
        expect(host.registry.list().map(({ name, allocId }) => [name, allocId])).to.deep.equal(
          names.map((name) => [name, name]),
        )
        expect(problems.all).to.deep.equal([])
      })
    }))
})
