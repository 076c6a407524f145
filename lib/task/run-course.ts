import { stopGraceMs } from '../defaults.js'
import type { TaskExit, TaskSpec } from './driver.js'
import { decideRestart, freshHistory, readRestartPolicy } from './restart-policy.js'
import { newRun, quiet, type After, type Moment, type RunInput, type TaskRun } from './task-run.js'

/** The course of a run: it begins, it is being ended, it has ended, and something follows. */

export function begin<Handle>(run: TaskRun<Handle>, spec: TaskSpec, { at }: Moment): TaskRun<Handle> {
  const events = [...run.events, { kind: 'prestart', task: spec, at } as const]
  return { ...newRun, spec, doing: { kind: 'prepare', spec }, history: run.history, events }
}

/** A run that was unwanted before it began is ended without a word: nobody takes it for one that serves. */
export function began<Handle>(
  run: TaskRun<Handle>,
  { handle, pid, adopted }: Omit<Extract<RunInput<Handle>, { kind: 'began' }>, 'kind'>,
  { at }: Moment,
): TaskRun<Handle> {
  const running: TaskRun<Handle> = { ...quiet(run), doing: { kind: 'run', handle }, startedAt: at, pid }
  if (run.after || run.spec === undefined) return stopping(running, handle)
  const more = { ...(pid !== undefined && { pid }), ...(adopted && { adopted }) }
  return { ...running, events: [{ kind: 'started', task: run.spec, at, ...more }] }
}

/** The run is to end, with what it started. Where that is under way it goes on undisturbed: the same `doing` is kept. */
export function stopping<Handle>(run: TaskRun<Handle>, handle: Handle): TaskRun<Handle> {
  if (run.doing.kind === 'stop') return run
  return { ...run, doing: { kind: 'stop', handle, graceMs: run.spec?.stopGraceMs ?? stopGraceMs } }
}

/** The run has ended, or could not begin (`why`): what comes after it is decided now, so that it can be told. */
export function ended<Handle>(run: TaskRun<Handle>, exit: TaskExit, moment: Moment, why?: string): TaskRun<Handle> {
  const { spec, after } = run
  if (spec === undefined) return run
  const byHand = after?.kind === 'end' || after?.kind === 'start' ? { after } : undefined
  const next = byHand ?? decide(run, spec, exit, moment, why)
  const willRestart = next.after.kind === 'start' || next.after.kind === 'wait'
  return {
    ...run,
    ...next,
    pid: undefined,
    told: { ...run.told, exited: true },
    events: [
      {
        kind: 'exited',
        task: spec,
        at: moment.at,
        ...exit,
        willRestart,
        ...(why === undefined ? {} : { reason: why }),
      },
    ],
  }
}

function decide<Handle>(
  run: TaskRun<Handle>,
  spec: TaskSpec,
  exit: TaskExit,
  { at, random }: Moment,
  why: string | undefined,
): Pick<TaskRun<Handle>, 'history' | 'reason'> & { after: After } {
  const asked = run.after?.kind === 'ask' ? run.after.message : undefined
  const ranMs = run.startedAt === undefined ? 0 : at - run.startedAt
  const end = { failed: exit.code !== 0, asked: asked !== undefined, ranMs, at, random }
  const decision = decideRestart(readRestartPolicy(spec.restart), run.history, end)
  const reason = asked ?? why ?? exitWords(exit)
  switch (decision.kind) {
    case 'restart':
      return { after: { kind: 'wait', dueAt: at + decision.delayMs }, history: decision.history, reason }
    case 'held':
      return {
        after: { kind: 'hold' },
        history: decision.history,
        reason: `${decision.reason}; the last time: ${reason}`,
      }
    case 'ended':
      return { after: { kind: 'end' }, history: run.history, reason }
  }
}

function exitWords({ code, signal, reason }: TaskExit): string {
  const how = signal === null ? `exited with code ${code}` : `ended by ${signal}`
  return reason === undefined ? how : `${how}, ${reason}`
}

/** Nothing is left of the run: what was to come after it comes. */
export function goOn<Handle>(run: TaskRun<Handle>, moment: Moment): TaskRun<Handle> {
  const { after, spec, events } = run
  switch (after?.kind) {
    case 'start':
      return begin({ ...run, history: freshHistory }, after.spec, moment)
    case 'wait':
      return { ...run, after: undefined, doing: { kind: 'wait', dueAt: after.dueAt } }
    case 'hold':
      return { ...run, after: undefined, doing: { kind: 'hold' } }
    case 'end': {
      const stopped = spec === undefined ? [] : [{ kind: 'stopped', task: spec, at: moment.at } as const]
      return { ...run, doing: { kind: 'end' }, events: [...events, ...stopped] }
    }
    case 'ask':
    case undefined:
      return run
  }
}
