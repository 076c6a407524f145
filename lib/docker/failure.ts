import { messageOf, PlugstreamError } from '../errors.js'
import type { TaskSpec } from '../task/driver.js'

/** The HTTP status of what the engine refused; undefined where it did not answer. */
export function statusOf(failure: unknown): number | undefined {
  const status = (failure as { statusCode?: unknown } | undefined)?.statusCode
  return typeof status === 'number' ? status : undefined
}

/** What the engine said, without the words that the client puts around it. */
export function wordsOf(failure: unknown): string {
  const { json } = (failure ?? {}) as { json?: { message?: unknown } | null }
  const words = typeof json?.message === 'string' ? json.message : messageOf(failure)
  return words.trim().slice(0, 500)
}

/**
 * A container that could not be made or begin. Engines repeat what they were given: arguments and variables, where secrets may be, are
 * taken out, and the cause, which has them too, is left out.
 */
export function startFailure(spec: TaskSpec, doing: string, failure: unknown): PlugstreamError {
  if (failure instanceof PlugstreamError) return failure
  const status = statusOf(failure)
  const [program, ...args] = spec.command
  const secrets = [...args, ...Object.values(spec.env ?? {})].filter((text) => text.length > 3)
  const words = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), wordsOf(failure))
  const isStart = doing === 'start'
  return new PlugstreamError(
    isStart ? 'ERR_TASK_SPAWN' : 'ERR_CONTAINER',
    `task ${spec.taskName} of alloc ${spec.allocId} cannot ${isStart ? `run ${program}` : `have its container`}: ${words}`,
    {
      retryable: status === undefined,
      details: { allocId: spec.allocId, taskName: spec.taskName, program, status },
    },
  )
}
