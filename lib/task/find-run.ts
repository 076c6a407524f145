import { readFile, readlink } from 'node:fs/promises'
import { bootId } from '../boot-id.js'
import { isAlive, isSameProcess, listProcesses, seeProcess, type ProcessSight } from './process-sight.js'
import type { TaskRecord } from './task-record.js'

/**
 * The first process of a run that is on record, if anything of that run is left. One that is gone itself stands for the others of its
 * group.
 *
 * A pid alone proves nothing: it is the task's where the process began when the task's did, since the same start of the machine. Of a
 * run whose beginning was not put on record any more, the process is known by what only this task has: its endpoint in the
 * environment, or its output.
 */
export async function findRun(record: TaskRecord): Promise<ProcessSight | undefined> {
  if (record.bootId !== bootId()) return undefined
  const { process: known } = record
  const seen = known && seeProcess(known.pid)
  if (known && seen && isSameProcess(seen, known) && isAlive(seen)) return seen
  const young = (await listProcesses()).filter((one) => isAlive(one) && one.startTicks >= record.fromTicks)
  const suspects = known ? young.filter(({ group }) => group === known.pid) : young.filter(leads)
  // What a task starts has its environment: the task itself is the oldest of them.
  for (const suspect of suspects.sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid))
    if (await isMarked(suspect.pid, record)) return known ? { ...known, state: 'X', group: known.pid } : suspect
  return undefined
}

const leads = ({ pid, group }: ProcessSight): boolean => pid === group

async function isMarked(pid: number, { marks, outputs }: TaskRecord): Promise<boolean> {
  const environment = (await text(readFile(`/proc/${pid}/environ`, 'utf8'))).split('\0')
  if (marks.some((mark) => environment.includes(mark))) return true
  const open = await Promise.all([1, 2].map((fd) => text(readlink(`/proc/${pid}/fd/${fd}`))))
  return open.some((path) => outputs.includes(path))
}

/** Of a process that has gone meanwhile, or is not ours to ask, nothing. */
function text(reading: Promise<string>): Promise<string> {
  return reading.catch(() => '')
}
