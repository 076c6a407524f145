import { map, ReplaySubject, tap, type Observable } from 'rxjs'
import type { TaskSpec } from '../../lib/task/driver.js'
import { processDriver } from '../../lib/task/process-driver.js'
import type { Replacement } from '../../lib/task/replacement.js'
import type { TaskOrder } from '../../lib/task/task-spec.js'
import type { PluginTask, TaskEvent } from '../../lib/task/task.js'
import type { HostInit } from '../../streams/plugin-host.js'
import { runTasks } from '../../streams/run-tasks.js'
import type { PluginScript } from '../testing/plugin-script.js'
import type { ScriptedPlugin } from '../testing/scripted-plugin.js'
import { scriptedPluginCommand } from '../testing/spawn-scripted-plugin.js'
import { Recording } from './recording.js'
import { aStory, inDirectory, pluginTask, shortTiming, withHost, type Story } from './support.js'

/** A host whose tasks are child processes, and what it tells of upgrades. */
export interface UpgradeStory extends Story {
  readonly tasks: Recording<TaskEvent>
  readonly replaced: Recording<Replacement>
  run(spec: TaskSpec): void
  order(task: TaskSpec, order: TaskOrder['order']): void
}

/** The same order of things as with the defaults, in less time. */
export const upgradeTiming = { ...shortTiming, bakeMs: 300, drainMs: 5_000, holdMs: 10_000 }

/** A plugin that is a process, and can be replaced. */
export function pluginSpec(allocId: string, script: PluginScript, overrides: Partial<TaskSpec> = {}): TaskSpec {
  const { command, env } = scriptedPluginCommand({ nodeId: 'n1', ...script })
  return {
    ...pluginTask({ allocId, csiPlugin: { id: 'ebs', type: 'node' } }),
    command,
    env,
    restart: { mode: 'always', minDelayMs: 1 },
    ...overrides,
  }
}

export const controller = { csiPlugin: { id: 'ebs', type: 'controller' } } as const

/** A story with a task runner, in a directory of its own. */
export function anUpgrade(tell: (story: UpgradeStory) => Promise<void>, init: Partial<HostInit> = {}) {
  return (): Promise<void> =>
    inDirectory(async (directory) => {
      const input$ = new ReplaySubject<TaskSpec | TaskOrder>()
      const told$ = new ReplaySubject<TaskEvent>()
      const tasks = new Recording(told$)
      const task$: HostInit['task$'] = (ports): Observable<TaskEvent> =>
        runTasks(input$, processDriver(), ports).pipe(tap((event) => told$.next(event)))
      await withHost(directory, { timing: upgradeTiming, task$, ...init }, async (story) => {
        const replaced = new Recording(story.host.replacement$)
        await tell({
          ...story,
          tasks,
          replaced,
          run: (spec) => input$.next(spec),
          order: ({ allocId, taskName }, order) => input$.next({ allocId, taskName, order }),
        })
      }).finally(() => tasks.stop())
    })
}

/** What was told, in words: the phases of a replacement. */
export const phases = (all: readonly Replacement[]): string[] => all.map(({ phase }) => phase)

/** What happened to tasks, as `old started`. */
export const happened = (all: readonly TaskEvent[]): string[] => all.map(({ task, kind }) => `${task.allocId} ${kind}`)

/** A host that runs its tasks by itself, in this process, and follows the orders it is given. */
export interface FollowedStory extends Story {
  readonly replaced: Recording<Replacement>
  /** What was ordered, as `start new` and `stop old`. */
  readonly orders: Recording<string>
  /** The plugin of an alloc that runs, or is going to. */
  pluginOf(allocId: string): Promise<ScriptedPlugin>
  /** Starts the task that is there before it is replaced, and waits until it is healthy. */
  begin(task: PluginTask): Promise<ScriptedPlugin>
}

/** The plugin of an alloc does as its script says. */
export function aFollowedStory(
  scripts: Readonly<Record<string, PluginScript>>,
  tell: (story: FollowedStory) => Promise<void>,
  init: Partial<HostInit> = {},
) {
  return aStory({ timing: upgradeTiming, ...init }, async (story) => {
    const { host, start, health } = story
    const running = new Map<string, ScriptedPlugin>()
    const begun$ = new ReplaySubject<string>()
    const begun = new Recording(begun$)
    const begin = async (task: PluginTask): Promise<ScriptedPlugin> => {
      const plugin = await start(task, { nodeId: 'n1', ...scripts[task.allocId] })
      running.set(task.allocId, plugin)
      begun$.next(task.allocId)
      return plugin
    }
    const stop = async (task: PluginTask): Promise<void> => {
      story.tell('stopping', task)
      await running.get(task.allocId)?.close()
      running.delete(task.allocId)
      story.tell('stopped', task)
    }
    const given = new Map<string, PluginTask>()
    const follow = async (order: PluginTask | TaskOrder): Promise<void> => {
      if (!('order' in order)) given.set(order.allocId, order)
      const task = given.get(order.allocId) ?? pluginTask({ allocId: order.allocId })
      await ('order' in order ? stop(task) : begin(task))
    }
    const following = host.order$.subscribe((order) => void follow(order))
    const replaced = new Recording(host.replacement$)
    const orders = new Recording(
      host.order$.pipe(map((order) => `${'order' in order ? order.order : 'start'} ${order.allocId}`)),
    )
    try {
      await tell({
        ...story,
        replaced,
        orders,
        pluginOf: async (allocId) => {
          await begun.until((one) => one === allocId)
          return running.get(allocId)!
        },
        begin: async (task) => {
          given.set(task.allocId, task)
          const plugin = await begin(task)
          await health.until((event) => event.healthy && event.plugin.allocId === task.allocId)
          return plugin
        },
      })
    } finally {
      following.unsubscribe()
      begun.stop()
    }
  })
}
