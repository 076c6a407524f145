// npm run bench [-- --only a,c-restore] [--rounds 5] [--json]
import { parseArgs } from 'node:util'
import type { Bench, Sample } from './bench.js'
import { benches } from './cases/index.js'
import { summarise, type Summary } from './summary.js'
import { table } from './table.js'

const { values } = parseArgs({
  options: { only: { type: 'string' }, rounds: { type: 'string' }, json: { type: 'boolean', default: false } },
})
const wanted = values.only?.split(',') ?? ['']
const chosen = benches.filter(({ name }) => wanted.some((start) => name.startsWith(start)))
if (chosen.length === 0)
  throw new Error(`--only is ${values.only}; there are ${benches.map(({ name }) => name).join(', ')}`)

const summaries: Summary[] = []
for (const bench of chosen) {
  const lack = bench.lacks?.()
  if (lack !== undefined) {
    console.error(`${bench.name}: not measured, since ${lack}`)
    continue
  }
  if (!values.json) console.error(`${bench.name}: ${bench.ours}, against ${bench.limit}`)
  summaries.push(await run(bench, Number(values.rounds ?? bench.rounds)))
}
console.log(values.json ? JSON.stringify(summaries, undefined, 2) : `\n${table(summaries)}`)

async function run(bench: Bench, rounds: number): Promise<Summary> {
  const opened = await bench.open()
  try {
    await opened.round(false)
    const samples: Sample[] = []
    while (samples.length < rounds) samples.push(await opened.round(samples.length % 2 === 0))
    return summarise(bench, samples)
  } finally {
    await opened.close()
  }
}
