import type { TaskRef } from './task.js'

/** What of a task's run has to be known to find it again. Nothing in it is secret. */
export interface TaskRecord extends TaskRef {
  /** Of what it was begun with: another one is another task. */
  digest: string
  /** The start of the machine since which this is so. */
  bootId: string
  /** When it was about to begin, in clock ticks since the machine's start. */
  fromTicks: number
  /** Entries of its environment that no other task has, as `CSI_ENDPOINT=unix:///…`. */
  marks: readonly string[]
  /** What its output goes to, as the system names it. */
  outputs: readonly string[]
  /** Known once it has begun. */
  process?: { pid: number; startTicks: number }
}

/** What is on record of the tasks that run, so that the next host finds them. */
export interface TaskJournal {
  get(task: TaskRef): TaskRecord | undefined
  list(): readonly TaskRecord[]
  /** Resolves once it is kept. @throws ERR_STORE_WRITE; what was on record before is so still. */
  put(record: TaskRecord): Promise<void>
  /** There is no such task any more. Where that cannot be saved, the next host finds a record of nothing. */
  delete(task: TaskRef): Promise<void>
}
