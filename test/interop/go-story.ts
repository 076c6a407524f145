import { join } from 'node:path'
import { ReplaySubject, tap } from 'rxjs'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { TaskEvent } from '../../lib/task/task.js'
import type { HostInit } from '../../streams/plugin-host.js'
import { runTasks } from '../../streams/run-tasks.js'
import { Recording } from '../stories/recording.js'
import { inDirectory, withHost, type Story } from '../stories/support.js'
import { goDriver, type GoDriverOptions } from './go-driver.js'
import { unmountBelow } from './mounts.js'

/** A host that runs programs in Go as its tasks. */
export interface GoStory extends Story {
  /** Everything of the story lies below it. */
  readonly directory: string
  readonly tasks: Recording<TaskEvent>
  /** Gives the host's runner a driver to run; its volumes are in a directory named for its alloc. */
  run(options?: GoDriverOptions, overrides?: Partial<TaskSpec>): Promise<TaskSpec>
  /** Gives it a task of any sort. */
  launch(task: TaskSpec): void
  order(task: TaskSpec, order: TaskOrder['order']): void
  /** The process that runs the task, once it has begun after what was skipped. */
  pidOf(task: TaskSpec): Promise<number>
}

/** @param init what else the host is opened with. */
export function aGoStory(tell: (story: GoStory) => Promise<void>, init: Partial<HostInit> = {}): () => Promise<void> {
  return () =>
    inDirectory(async (directory) => {
      const input$ = new ReplaySubject<TaskSpec | TaskOrder>()
      const told$ = new ReplaySubject<TaskEvent>()
      const tasks = new Recording(told$)
      const launch: GoStory['launch'] = (task) => input$.next(task)
      const run: GoStory['run'] = async (options, overrides = {}) => {
        const stateDir = join(directory, 'drivers', overrides.allocId ?? 'a1')
        const spec = await goDriver(stateDir, options, { restart: { mode: 'always', minDelayMs: 1 }, ...overrides })
        launch(spec)
        return spec
      }
      const pidOf: GoStory['pidOf'] = async ({ allocId }) => {
        const event = await tasks.until(({ kind, task }) => kind === 'started' && task.allocId === allocId)
        if (event.kind !== 'started' || event.pid === undefined) throw new Error('it has begun without a process')
        return event.pid
      }
      try {
        await withHost(
          join(directory, 'host'),
          { ...init, task$: (ports) => runTasks(input$, processDriver(), ports).pipe(tap(told$)) },
          (story) =>
            tell({
              ...story,
              directory,
              tasks,
              run,
              launch,
              order: ({ allocId, taskName }, order) => input$.next({ allocId, taskName, order }),
              pidOf,
            }),
        )
      } finally {
        tasks.stop()
        if (process.platform === 'linux') unmountBelow(directory)
      }
    })
}
