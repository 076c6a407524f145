import { deepStrictEqual } from 'node:assert'
import { TestScheduler, type RunHelpers } from 'rxjs/testing'

/** What a marble test works with: RxJS' own helpers, and one more. */
export interface MarbleHelpers extends RunHelpers {
  /**
   * Expects when a `cold` or `hot` source was subscribed (`^`) and released (`!`), one diagram for each subscription; none for a source
   * that nobody may subscribe.
   */
  expectSubscribed: (source: Pick<ReturnType<RunHelpers['cold']>, 'subscriptions'>, ...diagrams: string[]) => void
}

/**
 * Runs a marble test in virtual time, where values are compared deeply; throws where a diagram is not met. One character is one
 * millisecond. Promises and Node's timers are not virtual: what is asynchronous comes in as `cold(…)`.
 *
 * @example
 * it('passes on what it is given', () =>
 *   marbles(({ cold, expectObservable, expectSubscribed }) => {
 *     const source = cold('  -a-b-|')
 *     expectObservable(same(source)).toBe('-a-b-|')
 *     expectSubscribed(source, '^----!')
 *   }))
 */
export function marbles<T>(test: (helpers: MarbleHelpers) => T): T {
  const scheduler = new TestScheduler((actual, expected) => deepStrictEqual(actual, expected))
  return scheduler.run((helpers) =>
    test({
      ...helpers,
      expectSubscribed: (source, ...diagrams) => helpers.expectSubscriptions(source.subscriptions).toBe(diagrams),
    }),
  )
}
