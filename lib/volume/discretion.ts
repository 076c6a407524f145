import type { CsiClient } from '../csi/client.js'
import type { Secrets } from '../csi/messages/shared.js'
import { PlugstreamError } from '../errors.js'
import { withoutValues } from '../without-values.js'

/**
 * Keeps the secrets that plugins were given out of what comes back from them: drivers repeat them in their errors, also in those of calls
 * that take none. They are held in memory for that, as long as the host is open.
 */
export class Discretion {
  readonly #given = new Map<string, Set<string>>()

  /** A plugin is given secrets. */
  gives(plugin: string, secrets: Secrets): void {
    const known = this.#given.get(plugin) ?? new Set()
    for (const value of Object.values(secrets)) if (value !== '') known.add(value)
    this.#given.set(plugin, known)
  }

  /** A client whose failures do not show them. */
  client(plugin: string, client: CsiClient): CsiClient {
    const cleaned = (failure: unknown): unknown => this.#cleaned(plugin, failure)
    const discreet = async (answer: Promise<unknown>): Promise<unknown> => {
      try {
        return await answer
      } catch (failure) {
        throw cleaned(failure)
      }
    }
    const discreetStream = async function* (all: AsyncIterable<unknown>): AsyncGenerator {
      try {
        yield* all
      } catch (failure) {
        throw cleaned(failure)
      }
    }
    return new Proxy(client, {
      get: (target, name, receiver) => {
        const method: unknown = Reflect.get(target, name, receiver)
        if (typeof method !== 'function') return method
        return (...args: unknown[]): unknown => {
          const answer = (method as (...args: unknown[]) => unknown)(...args)
          if (answer instanceof Promise) return discreet(answer)
          return isStream(answer) ? discreetStream(answer) : answer
        }
      },
    })
  }

  #cleaned(plugin: string, failure: unknown): unknown {
    const values = [...(this.#given.get(plugin) ?? [])]
    const hide = (text: string): string => withoutValues(text, values)
    if (!(failure instanceof PlugstreamError) || hide(failure.message) === failure.message) return failure
    const { code, message, retryable } = failure
    const details = Object.fromEntries(
      Object.entries(failure.details).map(([name, value]) => [name, typeof value === 'string' ? hide(value) : value]),
    )
    // Without its cause, which has the driver's words as they were.
    return new PlugstreamError(code, hide(message), { retryable, details })
  }
}

const isStream = (answer: unknown): answer is AsyncIterable<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
