import { expect } from 'chai'
import { take } from 'rxjs'
import { listen } from '../../../streams/operators/listen.js'

/** Tells its present value in the call itself, as a channel tells of its connection. */
class Source {
  readonly listeners = new Set<(value: string) => void>()

  readonly on = (listener: (value: string) => void): (() => void) => {
    this.listeners.add(listener)
    listener('present')
    return () => void this.listeners.delete(listener)
  }
}

describe('listen', () => {
  it('listens from its subscription to its end, and passes on what it hears', () => {
    const source = new Source()
    const heard: string[] = []
    const value$ = listen(source.on)
    expect(source.listeners.size).to.equal(0)
    const subscription = value$.subscribe((value) => heard.push(value))
    for (const tell of source.listeners) tell('next')
    subscription.unsubscribe()
    expect(heard).to.deep.equal(['present', 'next'])
    expect(source.listeners.size).to.equal(0)
  })

  it('stops to listen also for one that leaves with what it hears in the call itself', () => {
    const source = new Source()
    const heard: string[] = []
    listen(source.on)
      .pipe(take(1))
      .subscribe((value) => heard.push(value))
    expect(heard).to.deep.equal(['present'])
    expect(source.listeners.size).to.equal(0)
  })

  it('fails where it cannot listen', () => {
    const failure = new Error('too many watches')
    const failures: unknown[] = []
    listen(() => {
      throw failure
    }).subscribe({ error: (given) => failures.push(given) })
    expect(failures).to.deep.equal([failure])
  })
})
