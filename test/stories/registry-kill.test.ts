import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { sqliteStore } from '../../lib/store/sqlite-store.js'
import { Registry } from '../../streams/registry.js'
import { scratchDir, source } from '../lib/store/scratch.js'

const total = 1_000

/**
 * A host that registers a thousand instances, ten at a time, and deregisters every third of them. It says `+ <alloc> <number>` and
 * `- <alloc> <number>` when that was acknowledged, the number being that of the event.
 */
const host = (file: string): string => `
  import { writeSync } from 'node:fs'
  import { sqliteStore } from ${source('lib/store/sqlite-store.ts')}
  import { Registry } from ${source('streams/registry.ts')}
  const registry = await Registry.open({ store: await sqliteStore({ file: ${JSON.stringify(file)} }) })
  const say = (sign, { plugin, seq }) => writeSync(1, sign + ' ' + plugin.allocId + ' ' + seq + '\\n')
  let next = 0
  const work = async () => {
    while (next < ${total}) {
      const at = next++
      const ref = { type: 'csi-node', name: 'ebs', allocId: 'a' + at }
      say('+', await registry.apply({ kind: 'register', plugin: { ...ref, connection: { socketPath: '/run/' + at } } }))
      if (at % 3 === 0) say('-', await registry.apply({ kind: 'deregister', ref }))
    }
  }
  await Promise.all(Array.from({ length: 10 }, work))
  setInterval(() => undefined, 1_000)
`

/** Runs the host until it has acknowledged `count`, kills it, and gives all it had acknowledged by then. */
async function killedAfter(count: number, file: string): Promise<{ sign: string; alloc: string; seq: number }[]> {
  const child = spawn(process.execPath, ['--import', 'tsx/esm', '--input-type=module', '-e', host(file)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.on('data', (data: Buffer) => {
    said += data.toString()
    if (said.split('\n').length > count) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return said
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '))
    .map(([sign = '', alloc = '', seq]) => ({ sign, alloc, seq: Number(seq) }))
}

describe('a host that is killed while it registers', () => {
  const scratch = scratchDir()

  for (const count of [1, 100, 600, 1_300]) {
    it(`has everything it acknowledged when it comes back, killed after ${count}`, async () => {
      const file = scratch.file('state.sqlite')
      const acknowledged = await killedAfter(count, file)
      expect(acknowledged.length).to.be.at.least(count)
      const expected = new Map<string, number>()
      for (const { sign, alloc, seq } of acknowledged) {
        if (sign === '+') expected.set(alloc, seq)
        else expected.delete(alloc)
      }

      const store = await sqliteStore({ file })
      const registry = await Registry.open({ store })
      const problems: unknown[] = []
      registry.problem$.subscribe((problem) => problems.push(problem))
      const seqs: number[] = []
      registry.watch$.subscribe(({ seq }) => seqs.push(seq))
      const found = registry.instances('csi-node', 'ebs').map(({ allocId }) => allocId)

      // Ten were under way at most: of each, what was not acknowledged may have happened or not.
      const gone = acknowledged.flatMap(({ sign, alloc }) => (sign === '-' ? [alloc] : []))
      expect(gone.filter((alloc) => found.includes(alloc))).to.deep.equal([])
      const missing = [...expected.keys()].filter((alloc) => !found.includes(alloc))
      expect(missing.filter((alloc) => Number(alloc.slice(1)) % 3 !== 0)).to.deep.equal([])
      expect(missing.length + found.filter((alloc) => !expected.has(alloc)).length).to.be.at.most(10)

      const inOrder = [...expected].sort(([, a], [, b]) => b - a).map(([alloc]) => alloc)
      expect(found.filter((alloc) => expected.has(alloc))).to.deep.equal(
        inOrder.filter((alloc) => found.includes(alloc)),
      )
      expect(Math.min(...seqs)).to.be.above(Math.max(...acknowledged.map(({ seq }) => seq)))
      expect(problems).to.deep.equal([])
      await registry.close()
      await store.close()
    })
  }
})
