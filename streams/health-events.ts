import { combineLatest, distinctUntilChanged, map, merge, mergeMap, takeUntil, type Observable } from 'rxjs'
import type { HealthEvent, HealthReason } from '../lib/plugin/health.js'
import type { RegistryEvent } from '../lib/plugin/plugin.js'
import type { PluginInstance } from './values.js'

export interface HealthPorts {
  /** Unix ms. */
  now: () => number
}

/**
 * Instances flow in; their health flows out, when `healthy` or the reason changes. The last event of an instance is `final`, says why
 * it went and comes in the turn in which it goes.
 */
export function healthEvents(instance$: Observable<PluginInstance>, { now }: HealthPorts): Observable<HealthEvent> {
  return instance$.pipe(
    mergeMap(({ plugin$, state$, gone$ }) => {
      const live$ = combineLatest([plugin$, state$]).pipe(
        distinctUntilChanged(([, a], [, b]) => a.healthy === b.healthy && a.reason === b.reason),
        map(([plugin, { healthy, reason, description }]) => ({
          plugin,
          healthy,
          reason,
          description,
          at: now(),
          final: false,
        })),
      )
      return merge(live$.pipe(takeUntil(gone$)), gone$.pipe(map((event) => lastWord(event, now()))))
    }),
  )
}

/** What is said of an instance that was deregistered for one of these reasons; another reason is said as it is. */
const lastWords = {
  stopping: 'its task is stopping',
  stopped: 'its task has stopped',
  'task-exited': 'its task exited and will not start again',
  lost: 'it was restored, no task claims it, and it did not answer',
} satisfies Partial<Record<HealthReason, string>>

function lastWord({ plugin, reason }: RegistryEvent, at: number): HealthEvent {
  const last = { plugin, healthy: false, at, final: true }
  return isLastReason(reason)
    ? { ...last, reason, description: lastWords[reason] }
    : { ...last, reason: 'deregistered', description: reason ?? 'it was deregistered' }
}

function isLastReason(reason: string | undefined): reason is keyof typeof lastWords {
  return reason !== undefined && Object.hasOwn(lastWords, reason)
}
