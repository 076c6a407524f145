import { expect } from 'chai'
import { firstValueFrom, from, type ObservableInput } from 'rxjs'
import type { LinkState, PluginChannel } from '../../../lib/plugin/kind.js'
import { openConnection } from '../../../streams/operators/open-connection.js'
import type { Connection } from '../../../streams/values.js'

/** A channel whose calls wait until they are aborted. */
class WaitingChannel implements PluginChannel {
  answered = 0
  closed = 0
  readonly signals: AbortSignal[] = []
  readonly listeners = new Set<(state: LinkState) => void>()

  onLink(listener: (state: LinkState) => void): () => void {
    this.listeners.add(listener)
    listener('idle')
    return () => void this.listeners.delete(listener)
  }

  probe(signal: AbortSignal): Promise<never> {
    return this.#wait(signal)
  }

  identify(signal: AbortSignal): Promise<never> {
    return this.#wait(signal)
  }

  fingerprint(_: string, signal: AbortSignal): Promise<never> {
    return this.#wait(signal)
  }

  close(): Promise<void> {
    this.closed++
    return Promise.resolve()
  }

  #wait(signal: AbortSignal): Promise<never> {
    this.signals.push(signal)
    return new Promise(() => undefined)
  }
}

describe('openConnection', () => {
  it('opens a channel for each subscription, and closes it when it is left', () => {
    const channels: WaitingChannel[] = []
    const closing: Promise<void>[] = []
    const connection$ = openConnection(
      () => {
        channels.push(new WaitingChannel())
        return channels.at(-1) as WaitingChannel
      },
      (work) => closing.push(work),
    )
    expect(channels).to.have.length(0)
    const given: Connection[] = []
    const subscription = connection$.subscribe((connection) => given.push(connection))
    connection$.subscribe().unsubscribe()
    expect(channels.map(({ closed }) => closed)).to.deep.equal([0, 1])
    subscription.unsubscribe()
    expect(channels.map(({ closed }) => closed)).to.deep.equal([1, 1])
    expect(given.map(({ channel }) => channel)).to.deep.equal([channels[0]])
    expect(closing).to.have.length(2)
  })

  it('gives the link as it is and as it changes, for as long as it is listened to', async () => {
    const channel = new WaitingChannel()
    const { link$, answered } = await firstValueFrom(openConnection(() => channel))
    const links: LinkState[] = []
    const subscription = link$.subscribe((link) => links.push(link))
    for (const tell of channel.listeners) tell('connected')
    subscription.unsubscribe()
    expect(links).to.deep.equal(['idle', 'connected'])
    expect(channel.listeners.size).to.equal(0)
    channel.answered = 3
    expect(answered()).to.equal(3)
  })

  it('makes a call for each subscription, which leaving aborts', async () => {
    const channel = new WaitingChannel()
    const connection = await firstValueFrom(openConnection(() => channel))
    const calls: (() => ObservableInput<unknown>)[] = [
      () => connection.probe(),
      () => connection.identify(),
      () => connection.fingerprint('csi-node'),
    ]
    for (const [index, call] of calls.entries()) {
      const call$ = from(call())
      expect(channel.signals).to.have.length(index)
      const subscription = call$.subscribe()
      expect(channel.signals[index]?.aborted).to.equal(false)
      subscription.unsubscribe()
      expect(channel.signals[index]?.aborted).to.equal(true)
    }
  })

  it('gives what a plugin tells of changes, which leaving aborts, and nothing of it where it cannot tell', async () => {
    const signals: AbortSignal[] = []
    class TellingChannel extends WaitingChannel {
      async *watch(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
        signals.push(signal)
        yield `changed ${this.answered}`
        await new Promise(() => undefined)
      }
    }
    const { watch } = await firstValueFrom(openConnection(() => new TellingChannel()))
    expect(await firstValueFrom(from(watch?.() ?? []))).to.equal('changed 0')
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([true])
    expect((await firstValueFrom(openConnection(() => new WaitingChannel()))).watch).to.equal(undefined)
  })

  it('fails where no channel can be opened', () => {
    const failure = new Error('the path is too long')
    const failures: unknown[] = []
    openConnection(() => {
      throw failure
    }).subscribe({ error: (given) => failures.push(given) })
    expect(failures).to.deep.equal([failure])
  })
})
