import { expect } from 'chai'
import fc from 'fast-check'
import type { TaskSpec } from '../../../lib/task/driver.js'
import { step } from '../../../lib/task/run-step.js'
import { absentTask, type RunInput, type TaskRun } from '../../../lib/task/task-run.js'

type Run = TaskRun<string>
type Input = RunInput<string>

const spec: TaskSpec = {
  allocId: 'a',
  taskName: 't',
  command: ['v1'],
  isolation: 'none',
  restart: { mode: 'on-failure', attempts: 2 },
}
const other: TaskSpec = { ...spec, command: ['v2'] }
const never: TaskSpec = { ...spec, restart: { mode: 'never' } }
const resources = { socketPath: '', env: {}, mounts: [] }

/** Inputs by a word each. */
const inputs: Readonly<Record<string, Input>> = {
  spec: { kind: 'spec', spec },
  other: { kind: 'spec', spec: other },
  never: { kind: 'spec', spec: never },
  stop: { kind: 'order', order: 'stop' },
  restart: { kind: 'order', order: 'restart' },
  resume: { kind: 'order', order: 'resume' },
  request: { kind: 'request', message: 'no socket' },
  prepared: { kind: 'prepared', resources },
  began: { kind: 'began', handle: 'h', pid: 7, adopted: false },
  adopt: { kind: 'began', handle: 'h', pid: 7, adopted: true },
  failed: { kind: 'failed', message: 'no room' },
  crash: { kind: 'exited', exit: { code: 1, signal: null } },
  exit: { kind: 'exited', exit: { code: 0, signal: null } },
  killed: { kind: 'cleared', exit: { code: null, signal: 'SIGKILL' } },
  clear: { kind: 'cleared', exit: { code: 1, signal: null } },
  due: { kind: 'due' },
}

/** What is told, as words: `exited` has + where a restart follows, and the spec's version is there where it is not the first. */
function play(words: string): { told: string; run: Run } {
  const told: string[] = []
  let run: Run = absentTask
  words.split(' ').forEach((word, at) => {
    const before = run
    run = step(run, inputs[word]!, { at, random: 0 })
    if (run === before) return
    for (const event of run.events) {
      const version = (event.task as TaskSpec).command[0] === 'v2' ? '2' : ''
      told.push(event.kind + version + (event.kind === 'exited' && event.willRestart ? '+' : ''))
    }
  })
  return { told: told.join(' '), run }
}

const running = 'spec prepared began'
const crashed = `${running} crash clear`

describe('the step of a task that is run', () => {
  const rows: [title: string, inputs: string, told: string, doing: Run['doing']['kind']][] = [
    ['prepares, starts and runs what is given', running, 'prestart started', 'run'],
    ['does nothing when it is given again, equal', `spec spec prepared spec began spec`, 'prestart started', 'run'],
    ['ends what exits well', `${running} exit clear`, 'prestart started exited stopped', 'end'],
    ['goes on with a run that was left, and prepares nothing', 'spec adopt', 'prestart started', 'run'],
    ['ends a run that was left where it is unwanted by then', 'spec stop adopt clear', 'prestart stopping exited stopped', 'end'],
    ['ends what may never be restarted', 'never prepared began crash clear', 'prestart started exited stopped', 'end'],
    ['waits after a crash', crashed, 'prestart started exited+', 'wait'],
    ['starts again when the wait is over', `${crashed} due prepared began`, 'prestart started exited+ prestart started', 'run'],
    ['tells of an exit once, whoever tells first', `${running} crash crash clear`, 'prestart started exited+', 'wait'],
    ['takes the exit from the stop where that is first', `${running} stop killed crash`, 'prestart started stopping exited stopped', 'end'],
    ['does not begin before all is cleared', `${running} crash due`, 'prestart started exited+', 'stop'],
    ['counts what cannot be prepared', 'spec failed', 'prestart exited+', 'wait'],
    ['counts what cannot begin', 'spec prepared failed', 'prestart exited+', 'wait'],
    ['holds what is out of attempts', `spec failed due failed due failed`, 'prestart exited+ prestart exited+ prestart exited', 'hold'],
    ['stays held when given again, equal', 'spec failed due failed due failed spec due', 'prestart exited+ prestart exited+ prestart exited', 'hold'],
    ['resumes by hand, with all attempts', 'spec failed due failed due failed resume failed', 'prestart exited+ prestart exited+ prestart exited prestart exited+', 'wait'],
    ['restarts what is held, too', 'spec failed due failed due failed restart', 'prestart exited+ prestart exited+ prestart exited prestart', 'prepare'],
    ['starts what is given otherwise while held', 'spec failed due failed due failed other', 'prestart exited+ prestart exited+ prestart exited prestart2', 'prepare'],
    ['stops what is held', 'spec failed due failed due failed stop', 'prestart exited+ prestart exited+ prestart exited stopped', 'end'],

    ['stops what runs', `${running} stop exit clear`, 'prestart started stopping exited stopped', 'end'],
    ['is stopped once', `${running} stop stop exit stop clear`, 'prestart started stopping exited stopped', 'end'],
    ['stops what waits', `${crashed} stop`, 'prestart started exited+ stopped', 'end'],
    ['stops what is being cleared', `${running} crash stop clear`, 'prestart started exited+ stopped', 'end'],
    ['waits for the preparation of what is stopped', 'spec stop prepared', 'prestart stopping stopped', 'end'],
    ['ends what is stopped and fails', 'spec stop failed', 'prestart stopping stopped', 'end'],
    ['waits for the start of what is stopped, and ends it unseen', 'spec prepared stop began exit clear', 'prestart stopping exited stopped', 'end'],
    ['starts again what is given while it stops', `${running} stop spec exit clear`, 'prestart started stopping exited+ prestart', 'prepare'],
    ['starts again what is resumed while it stops', `${running} stop resume exit clear`, 'prestart started stopping exited+ prestart', 'prepare'],
    ['starts again what is given after its exit was told', `${running} stop exit spec clear`, 'prestart started stopping exited prestart', 'prepare'],
    ['stops after all what was to start again', `${running} stop spec stop exit clear`, 'prestart started stopping exited stopped', 'end'],
    ['prepares anew what was stopped and given again meanwhile', 'spec stop spec prepared', 'prestart stopping prestart', 'prepare'],

    ['replaces what runs', `${running} other crash clear`, 'prestart started exited+ prestart2', 'prepare'],
    ['replaces it by the last that was given', `${running} other spec crash clear`, 'prestart started exited+ prestart', 'prepare'],
    ['replaces what is prepared', 'spec other prepared', 'prestart prestart2', 'prepare'],
    ['replaces what is starting', 'spec prepared other began crash clear', 'prestart exited+ prestart2', 'prepare'],
    ['replaces what is starting and fails', 'spec prepared other failed', 'prestart prestart2', 'prepare'],
    ['replaces what waits, at once', `${crashed} other`, 'prestart started exited+ prestart2', 'prepare'],
    ['replaces what is being cleared', `${running} crash other clear`, 'prestart started exited+ prestart2', 'prepare'],
    ['leaves what waits to its pause when given again, equal', `${crashed} spec`, 'prestart started exited+', 'wait'],

    ['restarts by order', `${running} restart exit clear`, 'prestart started exited+ prestart', 'prepare'],
    ['restarts by order whatever the policy', 'never prepared began restart exit clear', 'prestart started exited+ prestart', 'prepare'],
    ['does not restart what is starting', 'spec restart prepared restart began', 'prestart started', 'run'],
    ['shortens a wait by order', `${crashed} restart`, 'prestart started exited+ prestart', 'prepare'],
    ['resumes what waits', `${crashed} resume`, 'prestart started exited+ prestart', 'prepare'],
    ['has nothing to resume in what runs', `${running} resume`, 'prestart started', 'run'],
    ['has nothing to order where nobody is', 'restart', '', 'end'],
    ['has nothing to stop where nobody is', 'stop', '', 'end'],

    ['restarts on request, after a pause', `${running} request exit clear`, 'prestart started exited+', 'wait'],
    ['asks once', `${running} request request exit clear`, 'prestart started exited+', 'wait'],
    ['counts a request like a crash', `${running} request exit clear due prepared began request exit clear due prepared began crash`, 'prestart started exited+ prestart started exited+ prestart started exited', 'stop'],
    ['follows no request where it may never restart', 'never prepared began request', 'prestart started', 'run'],
    ['follows no request that comes before it runs', 'spec request prepared request began', 'prestart started', 'run'],
    ['follows no request that comes after it', `${running} crash request clear request`, 'prestart started exited+', 'wait'],
    ['stops what a request is ending', `${running} request stop exit clear`, 'prestart started stopping exited stopped', 'end'],
    ['replaces what a request is ending', `${running} request other exit clear`, 'prestart started exited+ prestart2', 'prepare'],
  ] // prettier-ignore

  for (const [title, words, told, doing] of rows) {
    it(`${title}: ${words}`, () => {
      const played = play(words)
      expect(played.told).to.equal(told)
      expect(played.run.doing.kind).to.equal(doing)
    })
  }

  it('says why it waits, is held, or has ended', () => {
    expect(play(crashed).run.reason).to.equal('exited with code 1')
    expect(play('spec failed').run.reason).to.equal('no room')
    expect(play(`${running} request killed`).run.reason).to.equal('no socket')
    expect(play('spec failed due failed due failed').run.reason).to.equal(
      'restarted 2 times in 600 seconds; the last time: no room',
    )
    expect(play(`${running} exit clear`).run.reason).to.equal('exited with code 0')
    expect(play(`${running} request`).run.reason).to.equal('no socket')
    expect(play(`${crashed} due`).run.reason).to.equal(undefined)
  })

  it('tells the reason of what could not begin in the event too', () => {
    expect(play('spec prepared failed').run.events[0]).to.include({ code: null, signal: null, reason: 'no room' })
    expect(play(`${running} crash`).run.events[0]).to.not.have.property('reason')
  })

  it('goes on ending a run undisturbed, whatever is wished meanwhile', () => {
    const before = play(`${running} stop`).run.doing
    let run = play(`${running} stop`).run
    for (const word of ['spec', 'stop', 'other', 'restart', 'resume', 'request', 'crash', 'stop', 'spec']) {
      run = step(run, inputs[word]!, { at: 9, random: 0 })
      expect(run.doing, word).to.deep.equal(before)
    }
  })

  it('keeps its promises over any order of things', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...Object.keys(inputs)), { maxLength: 60 }), (words) => {
        let run: Run = absentTask
        let alive = false // a run has begun and not been cleared
        const told: string[] = []
        let at = 0
        const feed = (word: string): void => {
          const { doing } = run
          // what the runner can bring about now; wishes come at any time
          const possible: Partial<Record<Run['doing']['kind'], string[]>> = {
            prepare: ['prepared', 'failed', 'adopt'],
            start: ['began', 'failed'],
            run: ['crash', 'exit'],
            stop: ['crash', 'exit', 'clear', 'killed'],
            wait: ['due'],
          }
          const wishes = ['spec', 'other', 'never', 'stop', 'restart', 'resume', 'request']
          if (!wishes.includes(word) && !possible[doing.kind]?.includes(word)) return
          const before = run
          run = step(run, inputs[word]!, { at: (at += 1_000), random: 0 })
          if (run === before) return
          if (word === 'began' || word === 'adopt') {
            expect(alive, 'two runs at a time').to.be.false
            alive = true
          }
          if (word === 'clear' || word === 'killed') alive = false
          told.push(...run.events.map(({ kind }) => kind))
          for (const event of run.events) if (event.kind === 'stopped') expect(alive, 'stopped alive').to.be.false
        }
        words.forEach(feed)
        // and in the end everything can be stopped
        if (run.doing.kind !== 'nothing') {
          for (const word of ['stop', 'prepared', 'began', 'exit', 'clear']) feed(word)
          expect(run.doing.kind).to.equal('end')
          expect(alive).to.be.false
        }
        const runs = told.join(' ').split(/(?=prestart)/).map((one) => one.trim()) // prettier-ignore
        for (const one of runs) expect(one).to.match(/^(prestart( started)?( stopping)?( exited)?( stopped)?)?$/)
        expect(told.filter((kind) => kind === 'stopped').length).to.equal(told.length > 0 ? 1 : 0)
      }),
      { numRuns: 3_000 },
    )
  })
})
