import { createHash } from 'node:crypto'
import { bootId } from '../boot-id.js'
import { messageOf } from '../errors.js'
import { logger } from '../log.js'
import type { TaskSpec } from './driver.js'
import type { LogFile } from './log-file.js'
import { seeProcess, ticksNow } from './process-sight.js'
import type { TaskJournal, TaskRecord } from './task-record.js'
import type { TaskResources } from './task.js'

const log = logger('task')

/** A process that is about to begin, with what it is found by. Nothing where the system could not tell it again. */
export function recordOf(
  spec: TaskSpec,
  resources: TaskResources,
  outputs: readonly LogFile[],
): TaskRecord | undefined {
  const boot = bootId()
  if (boot === undefined) return undefined
  const { allocId, taskName } = spec
  return {
    allocId,
    taskName,
    digest: digestOf(spec),
    bootId: boot,
    fromTicks: ticksNow(),
    // The task's own variables win, and may have secrets in them.
    marks: Object.entries(resources.env).flatMap(([name, value]) =>
      spec.env?.[name] === undefined ? [`${name}=${value}`] : [],
    ),
    outputs: outputs.map(({ systemName }) => systemName),
  }
}

/** Puts on record which process it has become. Where that cannot be saved, it is found as one whose host died before it could. */
export async function hasBegun(journal: TaskJournal, record: TaskRecord, pid: number): Promise<void> {
  const seen = seeProcess(pid) // gone already: a record of nothing is right
  if (seen) await journal.put({ ...record, process: { pid, startTicks: seen.startTicks } }).catch(unsaved)
}

const unsaved = (failure: unknown): void => log('a process is not on record: %s', messageOf(failure))

/** What a process is begun with. Of secrets among it nothing can be found out by trying, as everything goes into it. */
export function digestOf({ command, cwd, env, isolation, plugin, csiPlugin }: TaskSpec): string {
  const begunWith = sorted({ command, cwd, env, isolation, plugin, csiPlugin })
  return createHash('sha256').update(JSON.stringify(begunWith)).digest('hex')
}

/** With the fields of objects in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, part]) => [name, sorted(part)]))
}
