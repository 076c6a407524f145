import { began, begin, ended, goOn, stopping } from './run-course.js'
import { wishAgain, wishEnd, wishRestart, wishSpec } from './run-wishes.js'
import { quiet, type Moment, type RunInput, type TaskRun } from './task-run.js'

/**
 * The whole life of a task as one pure function. An input that means nothing now gives back the very same value; another one gives a
 * new one, with what is to be told in `events` and what is to be done in `doing`.
 *
 * No run begins before nothing is left of the one before.
 */
export function step<Handle>(run: TaskRun<Handle>, input: RunInput<Handle>, moment: Moment): TaskRun<Handle> {
  const { doing } = run
  switch (input.kind) {
    case 'spec':
      return wishSpec(run, input.spec, moment)
    case 'order':
      return input.order === 'stop' ? wishEnd(run, moment) : wishAgain(run, input.order, moment)
    case 'request':
      return wishRestart(run, input.message)
    case 'prepared':
      if (doing.kind !== 'prepare') return run
      if (run.after) return goOn(quiet(run), moment)
      return { ...quiet(run), doing: { kind: 'start', spec: doing.spec, resources: input.resources } }
    case 'began':
      return doing.kind === 'start' || doing.kind === 'prepare' ? began(run, input, moment) : run
    case 'failed':
      if (doing.kind !== 'prepare' && doing.kind !== 'start') return run
      return goOn(run.after ? quiet(run) : ended(run, noExit, moment, input.message), moment)
    case 'exited':
      if ((doing.kind !== 'run' && doing.kind !== 'stop') || run.told.exited) return run
      return stopping(ended(run, input.exit, moment), doing.handle)
    case 'cleared':
      if (doing.kind !== 'stop') return run
      return goOn(run.told.exited ? quiet(run) : ended(run, input.exit, moment), moment)
    case 'due':
      return doing.kind === 'wait' && run.spec ? begin(quiet(run), run.spec, moment) : run
  }
}

const noExit = { code: null, signal: null }
