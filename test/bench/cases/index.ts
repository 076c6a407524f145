import type { Bench } from '../bench.js'

/** Every bench, in the order they are run. */
export const benches: readonly Bench[] = []
