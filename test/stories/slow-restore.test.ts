import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { Subject } from 'rxjs'
import { memoryStore } from '../../lib/store/memory-store.js'
import type { StateStore } from '../../lib/store/state-store.js'
import { socketPathFor } from '../../lib/task/task-paths.js'
import type { TaskEvent } from '../../lib/task/task.js'
import { Registry } from '../../streams/registry.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { inDirectory, isHealthy, ofAlloc, pluginTask, withHost } from './support.js'

describe('task events that come while the host restores', () => {
  it('wait for the end of the restore, and none is lost', () =>
    inDirectory(async (stateDir) => {
      const records = new Map<string, string>()
      const registry = await Registry.open({ store: memoryStore(records) })
      for (const allocId of ['old', 'gone']) {
        const options = { taskName: 'driver' }
        await registry.register({ type: 'csi-node', name: 'ebs', allocId, connection: { socketPath: '/x' }, options })
      }
      await registry.close()

      const task = pluginTask()
      const socketPath = socketPathFor(stateDir, 'csi', { id: 'ebs', socketName: 'csi.sock' }, task)
      mkdirSync(dirname(socketPath), { recursive: true })
      await using plugin = await scriptedPlugin({ socketPath })

      const task$ = new Subject<TaskEvent>()
      const tell = (kind: 'prestart' | 'started' | 'stopped', allocId: string): void =>
        task$.next({ kind, task: pluginTask({ allocId }), at: 0 })
      const memory = memoryStore(records)
      const store: StateStore = {
        ...memory,
        async *read(prefix) {
          await turn()
          if (prefix === 'registry/sequence') tell('prestart', 'a1')
          if (prefix === 'plugin/') tell('started', 'a1')
          for await (const record of memory.read(prefix)) {
            if (record.key.endsWith('gone')) tell('stopped', 'gone')
            yield record
          }
        },
      }
      await withHost(stateDir, { store, task$ }, async ({ health, registry }) => {
        await health.until((event) => ofAlloc('a1')(event) && isHealthy(event))
        expect(plugin.calls).to.not.be.empty
        expect(registry.all.map(({ kind, plugin: { allocId } }) => `${kind} ${allocId}`)).to.deep.equal([
          'registered old',
          'registered gone',
          'deregistered gone',
          'registered a1',
        ])
      })
    }))
})
