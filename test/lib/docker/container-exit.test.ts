import { expect } from 'chai'
import { exitOf } from '../../../lib/docker/container-exit.js'

describe('the end of a container', () => {
  for (const code of [0, 1, 127, 130, 143])
    it(`is the code ${code}`, () => {
      expect(exitOf({ ExitCode: code, OOMKilled: false })).to.deep.equal({ code, signal: null })
    })

  for (const [code, signal] of [
    [137, 'SIGKILL'],
    [139, 'SIGSEGV'],
    [134, 'SIGABRT'],
  ] as const)
    it(`is ${signal} where the engine says ${code}`, () => {
      expect(exitOf({ ExitCode: code, OOMKilled: false })).to.deep.equal({ code: null, signal })
    })

  it('has a reason where it was out of memory', () => {
    expect(exitOf({ ExitCode: 137, OOMKilled: true })).to.deep.equal({
      code: null,
      signal: 'SIGKILL',
      reason: 'out of memory',
    })
  })
})
