import type { Bench, Sample } from './bench.js'

/** What the rounds of one bench come to. */
export interface Summary {
  name: string
  unit: Bench['unit']
  rounds: number
  median: number
  /** The value that one round in a hundred is worse than. */
  p99: number
  limitMedian: number
  limitP99: number
  /** Median of the ratios of ours to the limit, each of one round: what disturbs a round disturbs both of its sides. */
  ratio: number
  /** In words; empty where there is none. */
  aim: string
  met: boolean | undefined
}

export function summarise(bench: Pick<Bench, 'name' | 'unit' | 'aim'>, samples: readonly Sample[]): Summary {
  const ours = samples.map((sample) => sample.ours)
  const limit = samples.map((sample) => sample.limit)
  const worst = bench.unit === 'ops/s' ? 0.01 : 0.99
  const median = quantile(ours, 0.5)
  const ratio = quantile(
    samples.map((sample) => sample.ours / sample.limit),
    0.5,
  )
  const { medianAtMost, ratioAtMost, ratioAtLeast } = bench.aim ?? {}
  const aims = [
    medianAtMost !== undefined && { words: `≤ ${medianAtMost} ${bench.unit}`, met: median <= medianAtMost },
    ratioAtMost !== undefined && { words: `≤ ${ratioAtMost}×`, met: ratio <= ratioAtMost },
    ratioAtLeast !== undefined && { words: `≥ ${ratioAtLeast}×`, met: ratio >= ratioAtLeast },
  ].filter((aim) => aim !== false)
  return {
    name: bench.name,
    unit: bench.unit,
    rounds: samples.length,
    median,
    p99: quantile(ours, worst),
    limitMedian: quantile(limit, 0.5),
    limitP99: quantile(limit, worst),
    ratio,
    aim: aims.map(({ words }) => words).join(', '),
    met: aims.length === 0 ? undefined : aims.every(({ met }) => met),
  }
}

/** The value below which the given part of the values lies (nearest rank). */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? NaN
}
