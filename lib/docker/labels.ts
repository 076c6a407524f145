import { createHash } from 'node:crypto'
import type { TaskSpec } from '../task/driver.js'
import type { PluginTask, TaskRef } from '../task/task.js'

/** What marks a container as the run of a task. */
export const labelNames = {
  /** The host it belongs to. */
  host: 'plugstream.host',
  alloc: 'plugstream.alloc',
  task: 'plugstream.task',
  /** What the task says of itself as a plugin, without its variables, where secrets may be. */
  plugin: 'plugstream.plugin',
  /** A hash of all it was started with. */
  spec: 'plugstream.spec',
} as const

/**
 * The labels of a container that runs a task. Who starts containers by other means puts them on, so that `dockerTaskEvents` tells of them;
 * `plugstream.spec` is of no use then.
 *
 * @example containerLabels('node-1', { allocId: 'ebs-1', taskName: 'driver', isolation: 'image', csiPlugin: { id: 'ebs', type: 'node' } })
 */
export function containerLabels(hostId: string, task: PluginTask): Record<string, string> {
  const { allocId, taskName, isolation, csiPlugin, plugin } = task
  return {
    [labelNames.host]: hostId,
    [labelNames.alloc]: allocId,
    [labelNames.task]: taskName,
    [labelNames.plugin]: JSON.stringify({ isolation, csiPlugin, plugin }),
  }
}

/** The task that labels tell of; undefined where they tell of none. */
export function taskOf(labels: Readonly<Record<string, string>>): PluginTask | undefined {
  const { [labelNames.alloc]: allocId, [labelNames.task]: taskName, [labelNames.plugin]: words = '{}' } = labels
  if (!allocId || !taskName) return undefined
  try {
    const { isolation, csiPlugin, plugin } = JSON.parse(words) as Partial<PluginTask>
    return {
      allocId,
      taskName,
      isolation: isolation === 'none' ? 'none' : 'image',
      ...(csiPlugin && { csiPlugin }),
      ...(plugin && { plugin }),
    }
  } catch {
    return undefined
  }
}

/** The name of the one container that a task of a host can have. */
export function containerName(hostId: string, { allocId, taskName }: TaskRef): string {
  const readable = `${allocId}-${taskName}`.replace(/[^a-zA-Z0-9_.-]+/g, '-').slice(0, 60)
  return `plugstream-${readable}-${hash([hostId, allocId, taskName]).slice(0, 12)}`
}

/** The same for equal tasks alone, whatever the order of their fields. */
export function hashOfSpec(spec: TaskSpec): string {
  return hash(sorted(spec))
}

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, part]) => part !== undefined)
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) => [name, sorted(part)])
}
