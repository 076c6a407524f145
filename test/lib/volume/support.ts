import { getEventListeners } from 'node:events'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { PlugstreamError, type ErrorCode } from '../../../lib/errors.js'
import { Limits } from '../../../lib/volume/limits.js'

/** The failure of what must fail. */
export async function failureOf(work: Promise<unknown>, code?: ErrorCode): Promise<PlugstreamError> {
  const failure = await work.then(
    (answer) => expect.fail(`it answered ${String(answer)}`),
    (thrown: unknown) => thrown,
  )
  expect(failure).to.be.instanceOf(PlugstreamError)
  if (code !== undefined) expect(failure).to.have.property('code', code)
  return failure as PlugstreamError
}

/** The field that a bad value is refused for. */
export async function refused(door: () => unknown): Promise<unknown> {
  const { details } = await failureOf(Promise.resolve().then(door), 'ERR_OPTION_INVALID')
  return details['field']
}

/** Limits that nothing of a test reaches. */
export const enough = (): Limits => new Limits('testing', new AbortController().signal, Number.MAX_SAFE_INTEGER)

/** How many wait for the end of a signal. */
export const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

/** Lets everything happen that needs no time. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await turn()
}

/** The clock on the wall is set to another time, until this is disposed of. */
export function wallClockSet(byMs: number): Disposable {
  const wall = Date.now
  const set = mock.method(Date, 'now', () => wall() + byMs)
  return { [Symbol.dispose]: () => set.mock.restore() }
}

/** Time that passes when it is told to. */
export class Clock implements Disposable {
  readonly #elapsed

  constructor() {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    this.#elapsed = mock.method(performance, 'now', () => Date.now())
  }

  async pass(ms: number): Promise<void> {
    await settled()
    mock.timers.tick(ms)
    await settled()
  }

  [Symbol.dispose](): void {
    this.#elapsed.mock.restore()
    mock.timers.reset()
  }
}
