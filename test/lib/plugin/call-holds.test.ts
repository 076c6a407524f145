import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { CallHolds } from '../../../lib/plugin/call-holds.js'

/** Whether a hold is over by now. */
async function isOver(over: Promise<void> | undefined): Promise<boolean> {
  let ended = false
  void over?.then(() => (ended = true))
  await turn()
  return ended
}

describe('CallHolds', () => {
  it('holds what is held, and nothing else, until it is let go', async () => {
    const holds = new CallHolds()
    expect(holds.held('a')).to.equal(undefined)
    const letGo = holds.hold('a')
    const over = holds.held('a')
    expect(await isOver(over)).to.equal(false)
    expect(holds.held('b')).to.equal(undefined)
    letGo()
    expect(await isOver(over)).to.equal(true)
    expect(holds.held('a')).to.equal(undefined)
  })

  it('holds it until the last who holds it lets go, each once', async () => {
    const holds = new CallHolds()
    const first = holds.hold('a')
    const second = holds.hold('a')
    const over = holds.held('a')
    first()
    first()
    expect(await isOver(over)).to.equal(false)
    second()
    expect(await isOver(over)).to.equal(true)
  })

  it('holds it anew for who asks after it was let go and held in one turn', async () => {
    const holds = new CallHolds()
    const letGo = holds.hold('a')
    const before = holds.held('a')
    letGo()
    holds.hold('a')
    expect(await isOver(before)).to.equal(true)
    expect(await isOver(holds.held('a'))).to.equal(false)
  })
})
