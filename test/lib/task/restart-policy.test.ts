import { expect } from 'chai'
import {
  decideRestart,
  defaultRestartPolicy,
  freshHistory,
  readRestartPolicy,
  type RestartDecision,
  type RestartHistory,
  type RestartPolicy,
  type RunEnd,
} from '../../../lib/task/restart-policy.js'

const policy: RestartPolicy = {
  mode: 'on-failure',
  attempts: 3,
  windowMs: 60_000,
  stableMs: 10_000,
  minDelayMs: 100,
  maxDelayMs: 1_000,
  factor: 2,
  jitter: 0,
}
const crash: RunEnd = { failed: true, asked: false, ranMs: 5, at: 1_000_000, random: 0 }

/** The decisions after each of several ends, each on the history the one before left. */
function decisions(ends: readonly Partial<RunEnd>[], by: Partial<RestartPolicy> = {}): RestartDecision[] {
  let history: RestartHistory = freshHistory
  return ends.map((end) => {
    const decision = decideRestart({ ...policy, ...by }, history, { ...crash, ...end })
    if (decision.kind !== 'ended') history = decision.history
    return decision
  })
}

const words = (all: readonly RestartDecision[]): string[] =>
  all.map((one) => (one.kind === 'restart' ? `in ${one.delayMs}` : one.kind))

describe('restart policy', () => {
  describe('decides by the way a run ended', () => {
    const rows: [mode: RestartPolicy['mode'], end: Partial<RunEnd>, kind: RestartDecision['kind']][] = [
      ['never', { failed: true }, 'ended'],
      ['never', { failed: false }, 'ended'],
      ['never', { asked: true }, 'ended'],
      ['on-failure', { failed: true }, 'restart'],
      ['on-failure', { failed: false }, 'ended'],
      ['on-failure', { failed: false, asked: true }, 'restart'],
      ['always', { failed: true }, 'restart'],
      ['always', { failed: false }, 'restart'],
    ]
    for (const [mode, end, kind] of rows) {
      it(`${mode}, ${JSON.stringify(end)}: ${kind}`, () => {
        expect(decisions([end], { mode })[0]?.kind).to.equal(kind)
      })
    }
  })

  it('waits longer each time, and holds the task when its attempts are used up', () => {
    const ends = [0, 1, 2, 3].map((at) => ({ at: crash.at + at }))
    expect(words(decisions(ends))).to.deep.equal(['in 100', 'in 200', 'in 400', 'held'])
  })

  it('says how often in what time it was restarted when it holds it', () => {
    const last = decisions([{}, {}], { attempts: 1 })[1]
    expect(last).to.include({ kind: 'held', reason: 'restarted 1 time in 60 seconds' })
  })

  it('counts restarts of every cause against one budget', () => {
    const ends = [{}, { asked: true }, { failed: false }, {}]
    expect(words(decisions(ends, { mode: 'always' }))).to.deep.equal(['in 100', 'in 200', 'in 400', 'held'])
  })

  it('counts only what lies within the window, while the pause goes on growing', () => {
    const ends = [0, 30_000, 59_999, 60_000, 60_001].map((after) => ({ at: crash.at + after }))
    expect(words(decisions(ends))).to.deep.equal(['in 100', 'in 200', 'in 400', 'in 800', 'held'])
  })

  it('clears both after a run that was stable, and not a moment earlier', () => {
    expect(words(decisions([{}, {}, {}, { ranMs: 10_000 }]))[3]).to.equal('in 100')
    expect(words(decisions([{}, {}, {}, { ranMs: 9_999 }]))[3]).to.equal('held')
  })

  it('takes no run for stable that had to be ended for its health, however long it was', () => {
    expect(words(decisions([{}, {}, {}, { asked: true, ranMs: 300_000 }]))[3]).to.equal('held')
  })

  it('never holds a task whose window is shorter than its pauses', () => {
    const ends = Array.from({ length: 100 }, (_, n) => ({ at: crash.at + n * 1_000 }))
    expect(words(decisions(ends, { windowMs: 1_000 })).slice(-1)).to.deep.equal(['in 1000'])
  })

  it('forgets what is older than its window', () => {
    const ends = Array.from({ length: 100 }, (_, n) => ({ at: crash.at + n * 1_000 }))
    const last = decisions(ends, { windowMs: 2_500 }).at(-1)
    expect(last).to.have.nested.property('history.restartedAt').with.length(3)
  })

  it('changes no history it is given', () => {
    const history = Object.freeze({ restartedAt: Object.freeze([crash.at]), tries: 1 })
    expect(decideRestart(policy, history, crash).kind).to.equal('restart')
  })
})

describe('reading a restart policy', () => {
  it('fills in what is left out', () => {
    expect(readRestartPolicy(undefined)).to.deep.equal(defaultRestartPolicy)
    expect(readRestartPolicy({})).to.deep.equal(defaultRestartPolicy)
    expect(readRestartPolicy({ attempts: 2, mode: undefined })).to.deep.equal({ ...defaultRestartPolicy, attempts: 2 })
  })

  it('gives a copy, so that nobody changes the default', () => {
    expect(readRestartPolicy(undefined)).to.not.equal(defaultRestartPolicy)
  })

  it('takes its own default, and the edges of every range', () => {
    expect(readRestartPolicy(defaultRestartPolicy)).to.deep.equal(defaultRestartPolicy)
    const least = { attempts: 1, windowMs: 1, stableMs: 0, minDelayMs: 0, maxDelayMs: 0, factor: 1, jitter: 0 }
    expect(readRestartPolicy(least)).to.include(least)
    const longest = 2_147_483_647
    const most = { attempts: 1_000, windowMs: longest, stableMs: longest, maxDelayMs: longest, factor: 100, jitter: 1 }
    expect(readRestartPolicy(most)).to.include(most)
  })

  const wrong: [given: unknown, words: string][] = [
    [null, 'restart is null; it must be an object'],
    ['always', 'restart is "always"; it must be an object'],
    [[], 'restart is a list; it must be an object'],
    [{ mode: 'sometimes' }, 'restart.mode is "sometimes"; it must be one of never, on-failure, always'],
    [{ attempts: 0 }, 'restart.attempts is 0; it must be a whole number from 1 to 1000'],
    [{ attempts: 1.5 }, 'restart.attempts is 1.5; it must be a whole number from 1 to 1000'],
    [{ attempts: Infinity }, 'restart.attempts is Infinity; it must be a whole number from 1 to 1000'],
    [{ windowMs: '60s' }, 'restart.windowMs is "60s"; it must be a whole number from 1 to 2147483647'],
    [{ maxDelayMs: 2 ** 31 }, 'restart.maxDelayMs is 2147483648; it must be a whole number from 0 to 2147483647'],
    [{ minDelayMs: -1 }, 'restart.minDelayMs is -1; it must be a whole number from 0 to 2147483647'],
    [{ minDelayMs: 60_000 }, 'restart.minDelayMs is 60000; it must be at most maxDelayMs (30000)'],
    [{ factor: 0.5 }, 'restart.factor is 0.5; it must be a number from 1 to 100'],
    [{ jitter: NaN }, 'restart.jitter is NaN; it must be a number from 0 to 1'],
    [{ jitter: 1.1 }, 'restart.jitter is 1.1; it must be a number from 0 to 1'],
    [{ maxDelay: 5 }, 'restart.maxDelay is no field; there are mode, attempts'],
    [{ toString: 1 }, 'restart.toString is no field; there are mode'],
    [JSON.parse('{"__proto__": 1}'), 'restart.__proto__ is no field; there are mode'],
  ]
  for (const [given, expected] of wrong) {
    it(`refuses ${JSON.stringify(given)}`, () => {
      expect(() => readRestartPolicy(given))
        .to.throw(expected)
        .with.property('code', 'ERR_OPTION_INVALID')
    })
  }
})
