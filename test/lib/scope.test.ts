import { expect } from 'chai'
import { Scope } from '../../lib/scope.js'

describe('Scope', () => {
  let closed: string[]
  beforeEach(() => (closed = []))
  const closes =
    (name: string): (() => Promise<void>) =>
    async () => {
      await Promise.resolve()
      closed.push(name)
    }
  const fails =
    (name: string): (() => Promise<never>) =>
    async () => {
      closed.push(name)
      throw new Error(name)
    }

  it('closes in reverse, each when the one before it is done', async () => {
    const scope = new Scope()
    scope.add(closes('first'))
    scope.add(closes('second'))
    scope.add(() => closed.push('third'))
    expect(scope.closed).to.equal(false)
    await scope.close()
    expect(closed).to.deep.equal(['third', 'second', 'first'])
    expect(scope.closed).to.equal(true)
  })

  it('closes once, and joins a close in flight', async () => {
    const scope = new Scope()
    scope.add(closes('one'))
    const closing = scope.close()
    expect(scope.close()).to.equal(closing)
    await Promise.all([closing, scope[Symbol.asyncDispose]()])
    await scope.close()
    expect(closed).to.deep.equal(['one'])
  })

  it('goes on when a part fails, and fails with the one failure as it is', async () => {
    const scope = new Scope()
    scope.add(closes('first'))
    scope.add(fails('broken'))
    scope.add(closes('last'))
    const failure = await failureOf(scope.close())
    expect(failure).to.be.instanceOf(Error).with.property('message', 'broken')
    expect(closed).to.deep.equal(['last', 'broken', 'first'])
    expect(await failureOf(scope.close())).to.equal(failure)
  })

  it('fails with all failures where there are several', async () => {
    const scope = new Scope()
    scope.add(fails('a'))
    scope.add(() => {
      throw new Error('b')
    })
    const failure = await failureOf(scope.close())
    expect(failure).to.be.instanceOf(AggregateError)
    expect((failure as AggregateError).errors.map((one: Error) => one.message)).to.deep.equal(['b', 'a'])
  })

  it('forgets a closer that is given back, that one alone', async () => {
    const scope = new Scope()
    const close = closes('shared')
    scope.add(close)
    const forget = scope.add(close)
    forget()
    forget()
    scope.add(closes('other'))()
    await scope.close()
    expect(closed).to.deep.equal(['shared'])
  })

  it('runs at once what is added when it is closed, and the next close waits for that and tells its failure', async () => {
    const scope = new Scope()
    await scope.close()
    scope.add(closes('late'))()
    scope.add(fails('later'))
    expect(await failureOf(scope.close())).to.have.property('message', 'later')
    expect(closed).to.deep.equal(['late', 'later'])
  })
})

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
}
