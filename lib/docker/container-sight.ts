import type { TaskExit } from '../task/driver.js'
import { taskKey, type PluginTask, type TaskEvent } from '../task/task.js'

/** The engine is listened to (`connected`), or something has happened to a container. */
export type ContainerHint = { kind: 'connected' } | { kind: 'changed'; id: string }

/** A container that runs a task, as the engine showed it. */
export interface ContainerSight {
  id: string
  task: PluginTask
  running: boolean
  /** Tells one run of it from the next; empty where it has not run yet. */
  startedAt: string
  pid: number | undefined
  /** How it has ended; of meaning where it does not run. */
  exit: TaskExit
  /** The engine starts it again when it ends. */
  restarts: boolean
}

export type ContainerSights = ReadonlyMap<string, ContainerSight>

/** A look at all containers there are, or at one, which may be gone. */
export type ContainerLook =
  { kind: 'all'; sights: readonly ContainerSight[] } | { kind: 'one'; id: string; sight: ContainerSight | undefined }

/** The sights after a look. */
export function afterLook(before: ContainerSights, look: ContainerLook): ContainerSights {
  if (look.kind === 'all') return new Map(look.sights.map((sight) => [sight.id, sight]))
  const after = new Map(before)
  if (look.sight) after.set(look.id, look.sight)
  else after.delete(look.id)
  return after
}

/**
 * What has happened to tasks between two looks. Whatever was missed between them, what is told ends with what is: a run that was replaced
 * by another is told as ended, though not how.
 */
export function eventsBetween(before: ContainerSights, after: ContainerSights, at: number): TaskEvent[] {
  const ids = new Set([...before.keys(), ...after.keys()])
  const present = new Set([...after.values()].map(({ task }) => taskKey(task)))
  return [...ids].flatMap((id) => {
    const [was, is] = [before.get(id), after.get(id)]
    const task = (is ?? was)?.task
    if (!task) return []
    const about = { task, at }
    const events: TaskEvent[] = []
    const isSameRun = was?.running === true && is?.running === true && was.startedAt === is.startedAt
    if (was?.running && !isSameRun) events.push({ ...about, kind: 'exited', ...endAfter(was, is) })
    if (is?.running && !isSameRun) {
      events.push({ ...about, kind: 'prestart' }, { ...about, kind: 'started', ...(is.pid ? { pid: is.pid } : {}) })
    }
    // Another container of the same task may have taken its place.
    if (was && !is && was.startedAt !== '' && !present.has(taskKey(task))) events.push({ ...about, kind: 'stopped' })
    return events
  })
}

function endAfter(was: ContainerSight, is: ContainerSight | undefined): TaskExit & { willRestart: boolean } {
  if (!is) return { code: null, signal: null, willRestart: false }
  if (is.running) return { code: null, signal: null, willRestart: true }
  return { ...is.exit, willRestart: is.restarts || was.restarts }
}
