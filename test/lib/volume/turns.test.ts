import { createHook } from 'node:async_hooks'
import { expect } from 'chai'
import { Turns } from '../../../lib/volume/turns.js'
import { gate, type Gate } from '../../fakes/fake-store.js'
import { listeners, settled } from './support.js'

const { signal: never } = new AbortController()

/** Work that says when it begins, and goes on until its gate opens. */
function stepper(turns: Turns) {
  const begun: string[] = []
  const gates = new Map<string, Gate>()
  const take = (name: string, key = 'lane', signal = never): Promise<string> => {
    const end = gate()
    gates.set(name, end)
    return turns.take(key, signal, async () => {
      begun.push(name)
      await end.opened
      return name
    })
  }
  const end = async (name: string): Promise<void> => {
    gates.get(name)!.open()
    await settled()
  }
  return { begun, gates, take, end }
}

const reasonOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (answer) => expect.fail(`had its turn: ${String(answer)}`),
    (reason: unknown) => reason,
  )

/** How much is begun that is asynchronous in the course of some work: who goes round and round begins more and more. */
async function madeDuring(work: () => Promise<void>): Promise<number> {
  let made = 0
  const hook = createHook({ init: () => void made++ }).enable()
  await work()
  hook.disable()
  return made
}

describe('turns', () => {
  it('come one at a time, first come, first served', async () => {
    const { begun, take, end } = stepper(new Turns(1))
    const all = ['a', 'b', 'c', 'd'].map((name) => take(name))
    await settled()
    expect(begun).to.deep.equal(['a'])
    for (const [at, name] of ['a', 'b', 'c', 'd'].entries()) {
      expect(begun).to.have.length(at + 1)
      await end(name)
    }
    expect(begun).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(await Promise.all(all)).to.deep.equal(['a', 'b', 'c', 'd'])
  })

  it('come to as many at a time as the lane is wide, in whichever order those end', async () => {
    const { begun, take, end } = stepper(new Turns(2))
    const all = ['a', 'b', 'c', 'd'].map((name) => take(name))
    await settled()
    expect(begun).to.deep.equal(['a', 'b'])
    await end('b')
    expect(begun).to.deep.equal(['a', 'b', 'c'])
    await end('c')
    expect(begun).to.deep.equal(['a', 'b', 'c', 'd'])
    await end('d')
    await end('a')
    await Promise.all(all)
  })

  it('are each lane its own', async () => {
    const { begun, take, end } = stepper(new Turns(1))
    const all = [take('a', 'one'), take('b', 'two')]
    await settled()
    expect(begun).to.deep.equal(['a', 'b'])
    await end('a')
    await end('b')
    await Promise.all(all)
  })

  it('pass from one to the next, before anybody who comes at that moment', async () => {
    const turns = new Turns(1)
    const begun: string[] = []
    const work = (name: string) => async (): Promise<void> => void begun.push(name)
    const first = turns.take('lane', never, work('first')).then(() => turns.take('lane', never, work('late')))
    const second = turns.take('lane', never, work('second'))
    await Promise.all([first, second])
    expect(begun).to.deep.equal(['first', 'second', 'late'])
  })

  it('are no more after one has passed: who comes then waits as before', async () => {
    const { begun, take, end } = stepper(new Turns(1))
    const all = [take('a'), take('b')]
    await end('a')
    all.push(take('c'))
    await settled()
    expect(begun).to.deep.equal(['a', 'b'])
    await end('b')
    await end('c')
    await Promise.all(all)
  })

  it('pass on also where the work fails, whose failure is the answer', async () => {
    const { begun, gates, take, end } = stepper(new Turns(1))
    const failing = reasonOf(take('a'))
    const next = take('b')
    const failure = new Error('broken')
    gates.get('a')!.fail(failure)
    expect(await failing).to.equal(failure)
    await end('b')
    expect(await next).to.equal('b')
    expect(begun).to.deep.equal(['a', 'b'])
  })

  it('never come to who was aborted before, or while waiting: that is rejected with the reason, at once', async () => {
    const { begun, take, end } = stepper(new Turns(1))
    const stop = new AbortController()
    const reason = new Error('enough')
    const first = take('first')
    const waiting = reasonOf(take('waiting', 'lane', stop.signal))
    const last = take('last')
    stop.abort(reason)
    expect(await waiting).to.equal(reason)
    expect(await reasonOf(take('late', 'lane', stop.signal))).to.equal(reason)
    expect(begun).to.deep.equal(['first'])
    await end('first')
    await end('last')
    await Promise.all([first, last])
    expect(begun).to.deep.equal(['first', 'last'])
  })

  it('let the others pass also where all who waited have given up', async () => {
    const { begun, take, end } = stepper(new Turns(1))
    const stop = new AbortController()
    const first = take('first')
    const waiting = ['a', 'b', 'c'].map((name) => reasonOf(take(name, 'lane', stop.signal)))
    stop.abort()
    await Promise.all(waiting)
    await end('first')
    const next = take('next')
    await end('next')
    await Promise.all([first, next])
    expect(begun).to.deep.equal(['first', 'next'])
  })

  it('are waited for without doing anything, also behind work whose own signal is done', async () => {
    const { take, end } = stepper(new Turns(1))
    const stop = new AbortController()
    const idle = await madeDuring(settled)
    const first = take('first', 'lane', stop.signal)
    const second = take('second')
    await settled()
    stop.abort()
    await settled()
    expect(await madeDuring(settled)).to.be.at.most(idle)
    await end('first')
    await end('second')
    expect(await Promise.all([first, second])).to.deep.equal(['first', 'second'])
  })

  it('leave nobody listening, whether the turn came or not', async () => {
    const { take, end } = stepper(new Turns(1))
    const [had, gaveUp] = [new AbortController(), new AbortController()]
    const first = take('first', 'lane', had.signal)
    const second = take('second', 'lane', had.signal)
    const third = reasonOf(take('third', 'lane', gaveUp.signal))
    expect([listeners(had.signal), listeners(gaveUp.signal)]).to.deep.equal([1, 1])
    gaveUp.abort()
    await third
    await end('first')
    await end('second')
    await Promise.all([first, second])
    expect([listeners(had.signal), listeners(gaveUp.signal)]).to.deep.equal([0, 0])
  })
})
