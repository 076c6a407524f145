import { expect } from 'chai'
import { inUse, leftSince } from '../support/in-use.js'
import { Unfinished } from '../../lib/unfinished.js'

describe('Unfinished', () => {
  it('has settled where there is nothing', async () => {
    await new Unfinished().settled()
  })

  it('has settled when all of it has ended, however it did, and what began meanwhile too', async () => {
    const unfinished = new Unfinished()
    const ended: string[] = []
    let end = (): void => undefined
    const first = new Promise<void>((resolve) => (end = resolve)).then(() => {
      ended.push('first')
      unfinished.add(Promise.reject(new Error('no')).finally(() => ended.push('second')))
    })
    unfinished.add(first)
    const settled = unfinished.settled().then(() => ended.push('settled'))
    end()
    await settled
    expect(ended).to.deep.equal(['first', 'second', 'settled'])
  })

  it('is waited for as long as is said, and not longer', async () => {
    const unfinished = new Unfinished()
    unfinished.add(new Promise(() => undefined))
    await unfinished.settled(1)
  })

  it('is ended then, where it can be', async () => {
    const unfinished = new Unfinished()
    let isEnded = false
    unfinished.add(new Promise(() => undefined), () => (isEnded = true))
    unfinished.add(Promise.resolve(), () => expect.fail('it was over'))
    await unfinished.settled(1)
    expect(isEnded).to.equal(true)
  })

  it('leaves no timer behind where it has settled in time', async () => {
    const unfinished = new Unfinished()
    unfinished.add(Promise.resolve())
    const before = await inUse()
    await unfinished.settled(60_000)
    expect(await leftSince(before, 100)).to.deep.equal([])
  })
})
