import { abortedError } from '../errors.js'

/**
 * What `work` comes to, or undefined after `timeoutMs`. The work hears by its signal that nobody waits any more; what it comes to after
 * that is dropped.
 *
 * @throws ERR_ABORTED or ERR_TIMEOUT as soon as `signal` is aborted; `doing` is in its words.
 */
export async function within<T>(
  doing: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  if (signal?.aborted) throw abortedError(doing, signal)
  const stop = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let leave: (() => void) | undefined
  const left = new Promise<undefined>((resolve, reject) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs)
    if (!signal) return
    leave = (): void => reject(abortedError(doing, signal))
    signal.addEventListener('abort', leave)
  })
  const done = work(stop.signal)
  done.catch(() => undefined) // may come to its end after the wait for it has
  try {
    return await Promise.race([done, left])
  } finally {
    clearTimeout(timer)
    if (leave) signal?.removeEventListener('abort', leave)
    stop.abort()
  }
}
