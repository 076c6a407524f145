import { expect } from 'chai'
import type { PlugstreamError } from '../../../lib/errors.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import type { StateStore, StoreRecord } from '../../../lib/store/state-store.js'
import { openTaskJournal } from '../../../lib/task/task-journal.js'
import type { TaskJournal, TaskRecord } from '../../../lib/task/task-record.js'

const record: TaskRecord = {
  allocId: 'a/1',
  taskName: 't',
  digest: 'd',
  bootId: 'b',
  fromTicks: 5,
  marks: ['CSI_ENDPOINT=unix:///s'],
  outputs: ['/log'],
}
const key = 'task/a~2f1/t'

async function contents(store: StateStore): Promise<Record<string, unknown>> {
  const found: StoreRecord[] = []
  for await (const one of store.read('')) found.push(one)
  return Object.fromEntries(found.map((one) => [one.key, 'value' in one ? one.value : one.error]))
}

async function open(store: StateStore): Promise<{ journal: TaskJournal; problems: PlugstreamError[] }> {
  const problems: PlugstreamError[] = []
  return { journal: await openTaskJournal(store, (problem) => problems.push(problem)), problems }
}

describe('journal of tasks', () => {
  it('has what was put on record when it is opened again, until it is deleted', async () => {
    const store = memoryStore()
    const { journal } = await open(store)
    await journal.put(record)
    await journal.put({ ...record, process: { pid: 7, startTicks: 6 } })
    const again = (await open(store)).journal
    expect(again.get(record)).to.deep.equal({ ...record, process: { pid: 7, startTicks: 6 } })
    expect(again.list()).to.have.lengthOf(1)
    await again.delete(record)
    expect(again.get(record)).to.be.undefined
    expect((await open(store)).journal.list()).to.deep.equal([])
  })

  it('keeps what it had where the store cannot save', async () => {
    const store = memoryStore()
    const { journal } = await open(store)
    await journal.put(record)
    await store.close()
    const failure: unknown = await journal.put({ ...record, digest: 'e' }).catch((thrown: unknown) => thrown)
    expect(failure).to.have.property('code', 'ERR_CLOSED')
    expect(journal.get(record)?.digest).to.equal('d')
  })

  for (const [what, value, why] of [
    ['no schema', { ...record }, 'it has no schema'],
    ['no start of the machine', { schema: 1, ...record, bootId: '' }, 'a field is missing'],
    ['no list of marks', { schema: 1, ...record, marks: 'all' }, 'what it is found by'],
    ['the process that is everybody', { schema: 1, ...record, process: { pid: 0, startTicks: 1 } }, 'its process'],
    ['the first process', { schema: 1, ...record, process: { pid: 1, startTicks: 1 } }, 'its process'],
    ['a group for a process', { schema: 1, ...record, process: { pid: -7, startTicks: 1 } }, 'its process'],
    ['another task', { schema: 1, ...record, taskName: 'u' }, 'the record of another task'],
  ] as const)
    it(`tells of a record with ${what}, knows nothing of its task, and sets it aside for the next`, async () => {
      const store = memoryStore()
      await store.save([{ kind: 'put', key, value }])
      const { journal, problems } = await open(store)
      expect(problems.map(({ code, message }) => `${code}: ${message}`)).to.have.lengthOf(1)
      expect(problems[0]?.message).to.include(key).and.include(why)
      expect(journal.get(record)).to.be.undefined
      expect(await contents(store))
        .to.have.property(key)
        .that.deep.equals(value)
      await journal.put(record)
      expect(await contents(store)).to.deep.include({ [`quarantine/${key}`]: value })
    })

  it('leaves a record of a newer version as it is, and says so', async () => {
    const store = memoryStore()
    await store.save([{ kind: 'put', key, value: { schema: 2, ...record } }])
    const { problems } = await open(store)
    expect(problems.map(({ code }) => code)).to.deep.equal(['ERR_STORE_READ'])
  })
})
