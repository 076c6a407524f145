/** One round: what the library took, and what the same took without it, measured one after the other. */
export interface Sample {
  ours: number
  limit: number
}

/** What a median, or the ratio to the limit, should come to. */
export interface Aim {
  medianAtMost?: number
  ratioAtMost?: number
  ratioAtLeast?: number
}

/** One question to the clock. */
export interface Bench {
  /** Begins with the letter it is asked for by, as in `c-one-at-a-time-1000`. */
  name: string
  /** For people: what is measured, and what stands beside it. */
  ours: string
  limit: string
  unit: 'ms' | 'ops/s' | 'KiB'
  rounds: number
  aim?: Aim
  /** Why it cannot be measured here; undefined where it can. */
  lacks?: () => string | undefined
  /** Opens what the rounds share. The first round of all is a warm-up and does not count. */
  open(): Promise<Rounds>
}

export interface Rounds {
  /** One round; every other one measures the limit first, so that neither side has the better place. */
  round(limitFirst: boolean): Promise<Sample>
  close(): Promise<void>
}

/** A round of two measurements, one after the other. */
export function inTurn(ours: () => Promise<number>, limit: () => Promise<number>): Rounds['round'] {
  return async (limitFirst) => {
    const first = limitFirst ? await limit() : undefined
    const middle = await ours()
    return { ours: middle, limit: first ?? (await limit()) }
  }
}

/** How long something takes, in ms. */
export async function timed(work: () => unknown): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** How many a second, if `count` of them are done by the work. */
export async function rate(count: number, work: () => unknown): Promise<number> {
  return (count * 1_000) / (await timed(work))
}
