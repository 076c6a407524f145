import type { TaskExit } from './driver.js'
import { taskKey, type PluginTask, type TaskEvent } from './task.js'

/** What runs a task (a container, a unit, an alloc), as whoever runs it showed it. */
export interface TaskSight {
  /** Names what runs it. */
  id: string
  task: PluginTask
  running: boolean
  /** It runs, and was asked to end. */
  stopping?: boolean
  /** Tells one run of it from the next, and sorts after those before: when it began, say. Empty where it has not run yet. */
  run: string
  pid?: number | undefined
  /** How that run has ended; of meaning where it does not run. */
  exit: TaskExit
  /** Where it does not run: it is started again. */
  restarts: boolean
}

/** A look at all that run tasks, or at one, which may be gone. */
export type TaskLook =
  { kind: 'all'; sights: readonly TaskSight[] } | { kind: 'one'; id: string; sight: TaskSight | undefined }

/** By their ids. */
export type TaskSights = ReadonlyMap<string, TaskSight>

/** The sights after a look. */
export function afterLook(before: TaskSights, look: TaskLook): TaskSights {
  if (look.kind === 'all') return new Map(look.sights.map((sight) => [sight.id, sight]))
  const after = new Map(before)
  if (look.sight) after.set(look.id, look.sight)
  else after.delete(look.id)
  return after
}

/**
 * What has happened to tasks between two looks; without a look before, what runs has done so already (`adopted`). Whatever was missed
 * between them, what is told ends with what is: a run that was replaced by another is told as ended, though not how, and one that has begun and
 * ended in between is told by its end.
 */
export function eventsBetween(before: TaskSights | undefined, after: TaskSights, at: number): TaskEvent[] {
  const [were, are] = [byTask(before ?? new Map()), byTask(after)]
  return [...new Set([...were.keys(), ...are.keys()])].flatMap((key) => {
    const [was, is] = [were.get(key), are.get(key)]
    const task = (is ?? was)?.task
    if (!task) return []
    const about = { task, at }
    const events: TaskEvent[] = []
    const isNew = is !== undefined && is.run !== '' && !isSameRun(before?.get(is.id), is)
    if (was?.running && !(is?.running && !isNew)) {
      const end = isSameRun(was, is) ? is : after.get(was.id)
      events.push({ ...about, kind: 'exited', ...endOf(was, end), willRestart: isNew || end?.restarts === true })
    }
    if (isNew) events.push({ ...about, kind: 'prestart' })
    if (isNew && is.running) {
      const more = { ...(is.pid && { pid: is.pid }), ...(!before && { adopted: true }) }
      events.push({ ...about, kind: 'started', ...more })
    }
    if (isNew && !is.running) events.push({ ...about, kind: 'exited', ...is.exit, willRestart: is.restarts })
    if (is?.running && is.stopping && !(was?.stopping && !isNew)) events.push({ ...about, kind: 'stopping' })
    if (was && !is && was.run !== '') events.push({ ...about, kind: 'stopped' })
    return events
  })
}

/** What stands for each task: where there are several, what runs, else what ran last. */
function byTask(sights: TaskSights): Map<string, TaskSight> {
  const found = new Map<string, TaskSight>()
  for (const sight of sights.values()) {
    const key = taskKey(sight.task)
    const other = found.get(key)
    const isBefore = other && (other.running === sight.running ? other.run > sight.run : other.running)
    if (!isBefore) found.set(key, sight)
  }
  return found
}

function isSameRun(a: TaskSight | undefined, b: TaskSight | undefined): boolean {
  return a !== undefined && b !== undefined && a.id === b.id && a.run === b.run
}

/** Of a run that another took the place of unseen, nothing is known. */
function endOf(was: TaskSight, now: TaskSight | undefined): TaskExit {
  return now && !now.running && isSameRun(was, now) ? now.exit : { code: null, signal: null }
}
