import { PlugstreamError } from '../errors.js'
import { escapePathPart } from '../path-escape.js'
import type { StateStore, StoreRecord, StoreWrite } from '../store/state-store.js'
import { copyOf, corrupt, fieldsOf, quarantinePrefix } from '../stored-record.js'
import type { TaskJournal, TaskRecord } from './task-record.js'
import type { TaskRef } from './task.js'

const schema = 1

/** Every record of a task is under this prefix. */
export const taskPrefix = 'task/'

/**
 * Reads what is on record. A record that cannot be read is told as a problem and left; it is set aside before another takes its key.
 *
 * @throws ERR_STORE_READ.
 */
export async function openTaskJournal(
  store: StateStore,
  problem: (problem: PlugstreamError) => void,
): Promise<TaskJournal> {
  const records = new Map<string, TaskRecord>()
  const unread = new Map<string, unknown>()
  for await (const found of store.read(taskPrefix)) {
    try {
      records.set(found.key, decodeTask(found))
    } catch (failure) {
      unread.set(found.key, copyOf(found))
      problem(PlugstreamError.from(failure, 'ERR_STORE_CORRUPT', `reading ${found.key}`))
    }
  }
  const save = async (key: string, write: StoreWrite): Promise<void> => {
    const aside: StoreWrite[] = unread.has(key)
      ? [{ kind: 'put', key: quarantinePrefix + key, value: unread.get(key) }]
      : []
    await store.save([...aside, write])
    unread.delete(key)
  }
  return {
    get: (task) => records.get(taskRecordKey(task)),
    list: () => [...records.values()],
    put: async (record) => {
      const key = taskRecordKey(record)
      await save(key, { kind: 'put', key, value: { schema, ...record } })
      records.set(key, record)
    },
    delete: async (task) => {
      const key = taskRecordKey(task)
      if (!records.delete(key)) return
      await save(key, { kind: 'delete', key })
    },
  }
}

export function taskRecordKey({ allocId, taskName }: TaskRef): string {
  return taskPrefix + [allocId, taskName].map(escapePathPart).join('/')
}

function decodeTask(found: StoreRecord): TaskRecord {
  const { key } = found
  const value = fieldsOf(found, schema) as Partial<Record<keyof TaskRecord, unknown>>
  const texts = [value.allocId, value.taskName, value.digest, value.bootId]
  if (!texts.every((text) => typeof text === 'string' && text !== '')) throw corrupt(key, 'a field is missing')
  if (!isCount(value.fromTicks) || !areTexts(value.marks) || !areTexts(value.outputs))
    throw corrupt(key, 'what it is found by cannot be read')
  if (value.process !== undefined) {
    const { pid, startTicks } = Object(value.process) as { pid?: unknown; startTicks?: unknown }
    // Of 0 and 1, and of what is no number, a signal would go to others.
    if (!isCount(pid) || pid < 2 || !isCount(startTicks)) throw corrupt(key, 'its process cannot be read')
  }
  const record = value as unknown as TaskRecord
  if (taskRecordKey(record) !== key) throw corrupt(key, 'it is the record of another task')
  return record
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const areTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== '')
