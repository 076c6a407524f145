import { PlugstreamError } from '../errors.js'
import type { PluginFacts } from './fingerprint.js'
import { lostBetween, type PluginHalf } from './fingerprint-loss.js'
import type { PluginRef, PluginType } from './plugin.js'

/** One half of a plugin that is to be replaced: which instance serves it, and what is known of that. */
export interface ReplacedHalf {
  ref: PluginRef
  provider: string
  /** Absent where it was never asked. */
  facts: PluginFacts | undefined
}

/** What takes its place: for each plugin type that it serves what it can do, or nothing where that is not known yet. */
export type Successor = ReadonlyMap<PluginType, PluginHalf | undefined>

/**
 * Lets a plugin pass that can do all that the one before it could.
 *
 * @throws ERR_PLUGIN_CONFLICT naming what would be lost; `details.lost` has it too.
 */
export function checkSuccessor(plugin: string, before: readonly ReplacedHalf[], after: Successor): void {
  const lost = before.flatMap(({ ref: { type }, provider, facts }) => {
    if (!after.has(type)) return [type]
    const half = after.get(type)
    return facts && half ? lostBetween({ ...facts, provider }, half) : []
  })
  if (lost.length === 0) return
  const words = [...new Set(lost)].join(', ')
  throw new PlugstreamError(
    'ERR_PLUGIN_CONFLICT',
    `plugin ${JSON.stringify(plugin)} would lose ${words}; force replaces it all the same`,
    { details: { lost: words } },
  )
}
