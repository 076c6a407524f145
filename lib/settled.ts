/** Waits until all of the work has settled, well or badly, but no longer than `timeoutMs`. Says whether it has. */
export async function settledWithin(work: Iterable<Promise<unknown>>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), timeoutMs)))
  const done = Promise.allSettled(work).then(() => true)
  return Promise.race([done, late]).finally(() => clearTimeout(timer))
}
