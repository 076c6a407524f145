/**
 * What `work` comes to, or undefined after `timeoutMs`. The work hears by its signal that nobody waits any more; what it comes to after
 * that is dropped.
 *
 * @throws the reason of `signal`, as soon as it is aborted.
 */
export async function within<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  signal?.throwIfAborted()
  const stop = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let leave: (() => void) | undefined
  const left = new Promise<undefined>((resolve, reject) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs)
    leave = (): void => reject(signal?.reason as Error)
    signal?.addEventListener('abort', leave)
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
