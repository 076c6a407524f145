import type { HealthEvent, HealthReason } from '../plugin/health.js'
import type { TaskEvent, TaskNote } from './task.js'

/** What supervision finds out about the plugin of a task, before it is known whether that is worth a note. */
export interface TaskFinding {
  kind: TaskNote['kind']
  reason: HealthReason
  message: string
  /**
   * What makes a note of it. `loss`: the plugin was healthy before, since one that is starting never is. `change`: it was not told to
   * be so already. `news`: the very same was not told last.
   */
  when: 'loss' | 'change' | 'news'
}

/** Whether a finding is worth a note after `last`, the last note about the plugin's health. */
export function isWorthANote(finding: TaskFinding, last: Pick<TaskNote, 'kind' | 'message'> | undefined): boolean {
  if (finding.kind === 'restarting') return true
  switch (finding.when) {
    case 'loss':
      return last?.kind === 'plugin-healthy'
    case 'change':
      return last?.kind !== finding.kind
    case 'news':
      return last?.kind !== finding.kind || last.message !== finding.message
  }
}

/** A task that does not run cannot serve a plugin. */
export function findingOfEnd(event: Extract<TaskEvent, { kind: 'exited' | 'stopping' | 'stopped' }>): TaskFinding {
  switch (event.kind) {
    case 'exited': {
      const how = event.signal === null ? `exited with code ${event.code}` : `was ended by ${event.signal}`
      return unhealthy('task-exited', `its task ${how}`)
    }
    case 'stopping':
      return unhealthy('stopping', 'its task is stopping')
    case 'stopped':
      return unhealthy('stopped', 'its task has stopped')
  }
}

/** A plugin is healthy when all its instances are. */
export function findingOfHealth(events: readonly HealthEvent[]): TaskFinding {
  const sick = events.find((event) => !event.healthy)
  if (sick) return unhealthy(sick.reason, `${sick.plugin.type} ${sick.plugin.name}: ${sick.description}`)
  return { kind: 'plugin-healthy', reason: 'ready', message: 'the plugin is ready', when: 'change' }
}

/** A failure that no wait mends: a configuration that cannot be read, a registration that is refused. */
export function findingOfFailure(message: string): TaskFinding {
  return unhealthy('unknown', message, 'news')
}

/** The plugin was not ready in time: a note of that, and the restart that is asked for. */
export function findingsOfDelay(
  last: { reason: HealthReason; description: string },
  afterMs: number,
  socketPath: string,
): readonly TaskFinding[] {
  const { reason, description } = last
  const message = `not ready after ${afterMs} ms: ${reason}, ${description}; its socket is expected at ${socketPath}`
  return [unhealthy(reason, message, 'change'), { kind: 'restarting', reason, message, when: 'news' }]
}

function unhealthy(reason: HealthReason, message: string, when: TaskFinding['when'] = 'loss'): TaskFinding {
  return { kind: 'plugin-unhealthy', reason, message, when }
}
