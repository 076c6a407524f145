import type { Bench } from '../bench.js'
import { containing } from './containing.js'
import { holding } from './holding.js'
import { losing } from './losing.js'
import { mounting } from './mounting.js'
import { registering } from './registering.js'
import { restoring } from './restoring.js'
import { saving } from './saving.js'
import { tellings } from './telling.js'
import { upgrades } from './upgrading.js'

/** Every bench, in the order they are run. */
export const benches: readonly Bench[] = [
  registering,
  ...losing,
  ...saving,
  ...tellings,
  restoring,
  ...holding,
  ...mounting,
  containing,
  ...upgrades,
]
