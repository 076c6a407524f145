import { expect } from 'chai'
import { PlugstreamError } from '../../lib/errors.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import type { StateStore } from '../../lib/store/state-store.js'
import { aStory, isHealthy, kindsOf, ofType, pluginTask } from './support.js'

describe('a store that cannot save while a plugin registers', () => {
  /** Cannot save what has a key with this in it. */
  let full = ''
  const memory = memoryStore()
  const store: StateStore = {
    ...memory,
    async save(batch) {
      if (full && batch.some(({ key }) => key.includes(full)))
        throw new PlugstreamError('ERR_STORE_WRITE', 'no space left on the device')
      await memory.save(batch)
    },
  }

  for (const [what, key, registered] of [
    ['the whole of it', 'plugin/', []],
    ['the second half of a monolith', 'csi-node', ['csi-controller']],
  ] as const) {
    it(
      `is told, and tried again until it is back: ${what}`,
      aStory({ store }, async ({ host, registry, health, problems, notes, restarts, start, tell }) => {
        full = key
        const task = pluginTask({ csiPlugin: { id: 'ebs', type: 'monolith', healthTimeoutMs: 50 } })
        await start(task)
        await problems.untilAll((all) => all[2])
        for (const { code } of problems.all) expect(code).to.equal('ERR_STORE_WRITE')
        expect(host.registry.list().map(({ type }) => type)).to.deep.equal(registered)

        full = ''
        for (const type of ['csi-controller', 'csi-node'])
          await health.until((event) => ofType(type)(event) && isHealthy(event))
        expect(kindsOf(registry.all)).to.deep.equal(['registered', 'registered'])
        await notes.until(({ kind }) => kind === 'plugin-healthy')
        expect(notes.all).to.have.length(1)
        expect(restarts.all).to.deep.equal([])

        // Nor is a deregistration forgotten.
        full = key
        problems.skip()
        tell('stopping', task)
        await problems.untilAll((all) => all[1])
        full = ''
        await registry.untilAll((all) => (all.length === 4 ? true : undefined))
        expect(host.registry.list()).to.deep.equal([])
      }),
    )
  }
})
