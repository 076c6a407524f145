import { expect } from 'chai'
import { isStartedAgain, runOf } from '../../../lib/docker/container-looks.js'

describe('a container that has ended', () => {
  const facts = (rule: string | undefined, ExitCode = 1, RestartCount = 0, most = 0): boolean =>
    isStartedAgain({
      State: { Restarting: false, ExitCode },
      HostConfig: { RestartPolicy: rule === undefined ? undefined : { Name: rule, MaximumRetryCount: most } },
      RestartCount,
    })

  it('is started again where its engine has a rule that says so', () => {
    for (const rule of [undefined, '', 'no']) expect(facts(rule)).to.equal(false)
    for (const rule of ['always', 'unless-stopped']) expect(facts(rule, 0)).to.equal(true)
  })

  it('is started again by a rule about failures where it has failed, as often as that says', () => {
    expect(facts('on-failure')).to.equal(true)
    expect(facts('on-failure', 0)).to.equal(false)
    expect(facts('on-failure', 1, 1, 2)).to.equal(true)
    expect(facts('on-failure', 1, 2, 2)).to.equal(false)
  })

  it('is started again where its engine says so', () => {
    const State = { Restarting: true, ExitCode: 0 }
    expect(isStartedAgain({ State, HostConfig: {}, RestartCount: 9 })).to.equal(true)
  })
})

describe('a run of a container', () => {
  it('has a name that sorts by its beginning, however short its fraction is written', () => {
    const instants = [
      '2026-12-01T14:40:07Z',
      '2026-12-01T14:40:08.5Z',
      '2026-12-01T14:40:08.52Z',
      '2026-12-01T14:40:09Z',
    ]
    expect(instants.map(runOf).sort()).to.deep.equal(instants.map(runOf))
    expect(new Set(instants.map(runOf)).size).to.equal(4)
  })

  it('has none before there is one', () => {
    expect(runOf('0001-01-01T00:00:00Z')).to.equal('')
  })
})
