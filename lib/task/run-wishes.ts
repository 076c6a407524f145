import type { TaskSpec } from './driver.js'
import { readRestartPolicy, freshHistory } from './restart-policy.js'
import { begin, goOn, stopping } from './run-course.js'
import { quiet, type Moment, type TaskRun } from './task-run.js'
import { sameValue } from './task-spec.js'

/** What others want of a task. Of several wishes the last counts; what cannot be called back is waited for first. */

/** A task is given, for the first time or again. Equal to what is there or will be: nothing. */
export function wishSpec<Handle>(run: TaskRun<Handle>, spec: TaskSpec, moment: Moment): TaskRun<Handle> {
  return sameValue(spec, planned(run)) ? run : startByHand(run, spec, moment)
}

/** What will be running if nothing more is said. */
function planned(run: TaskRun<unknown>): TaskSpec | undefined {
  if (run.after?.kind === 'end') return undefined
  return run.after?.kind === 'start' ? run.after.spec : run.spec
}

export function wishAgain<Handle>(run: TaskRun<Handle>, order: 'restart' | 'resume', moment: Moment): TaskRun<Handle> {
  if (run.spec === undefined) return goOn({ ...run, after: { kind: 'end' } }, moment)
  const { kind } = run.doing
  const underWay = kind === 'prepare' || kind === 'start' || (kind === 'run' && order === 'resume')
  if (run.after?.kind === 'start' || (run.after === undefined && underWay)) return run
  return startByHand(run, run.spec, moment)
}

/** Somebody has looked, so what was counted against the policy no longer counts. */
function startByHand<Handle>(run: TaskRun<Handle>, spec: TaskSpec, moment: Moment): TaskRun<Handle> {
  const wanted: TaskRun<Handle> = { ...quiet(run), after: { kind: 'start', spec } }
  switch (run.doing.kind) {
    case 'nothing':
    case 'wait':
    case 'hold':
      return begin({ ...wanted, history: freshHistory }, spec, moment)
    case 'run':
      return stopping(wanted, run.doing.handle)
    case 'prepare':
    case 'start':
    case 'stop':
      return wanted
    case 'end':
      return run
  }
}

export function wishEnd<Handle>(run: TaskRun<Handle>, moment: Moment): TaskRun<Handle> {
  if (run.after?.kind === 'end') return run
  const wanted: TaskRun<Handle> = { ...quiet(run), after: { kind: 'end' } }
  switch (run.doing.kind) {
    case 'nothing':
    case 'wait':
    case 'hold':
      return goOn(wanted, moment)
    case 'run':
      return tellStopping(stopping(wanted, run.doing.handle), moment)
    case 'prepare':
    case 'start':
    case 'stop':
      return tellStopping(wanted, moment)
    case 'end':
      return run
  }
}

function tellStopping<Handle>(run: TaskRun<Handle>, { at }: Moment): TaskRun<Handle> {
  if (run.told.stopping || run.told.exited || run.spec === undefined) return run
  return {
    ...run,
    told: { ...run.told, stopping: true },
    events: [{ kind: 'stopping', task: run.spec, at }],
  }
}

/**
 * Supervision asks for a restart. A run that is not there any more, or not yet, is not meant; and one that its policy would not bring
 * back is left alone: a plugin that is ready late is still a plugin.
 */
export function wishRestart<Handle>(run: TaskRun<Handle>, message: string): TaskRun<Handle> {
  if (run.doing.kind !== 'run' || readRestartPolicy(run.spec?.restart).mode === 'never') return run
  return stopping({ ...quiet(run), after: { kind: 'ask', message }, reason: message }, run.doing.handle)
}
