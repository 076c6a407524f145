import type { Capabilities, NodeFacts, PluginFacts } from './fingerprint.js'
import type { PluginIdentity } from './kind.js'

/** One half of a plugin, as far as whoever uses it relies on it. */
export interface PluginHalf extends PluginFacts {
  /** Absent where it does not say. */
  provider?: PluginIdentity['provider'] | undefined
}

/**
 * What whoever uses a plugin would lose if another one took its place, in words for people; nothing where the new one can do all that the
 * old one could, in the same place. Capabilities that no name is known for count by their numbers. What it has more is no loss.
 *
 * @example lostBetween(before, after) // ['capability EXPAND_VOLUME', 'node id n1 (it would be n2)']
 */
export function lostBetween(before: PluginHalf, after: PluginHalf): string[] {
  return [
    ...(before.provider && after.provider ? changed('provider', before.provider, after.provider) : []),
    ...(before.requiresControllerPlugin && !after.requiresControllerPlugin ? ['capability CONTROLLER_SERVICE'] : []),
    ...(before.requiresTopologies && !after.requiresTopologies ? ['capability VOLUME_ACCESSIBILITY_CONSTRAINTS'] : []),
    ...(before.controller ? lostCapabilities(before.controller, after.controller) : []),
    ...(before.node ? lostOfNode(before.node, after.node) : []),
  ]
}

function lostOfNode(before: NodeFacts, after: NodeFacts | undefined): string[] {
  return [
    ...lostCapabilities(before, after),
    ...changed('node id', before.id, after?.id),
    ...lostRoom(before.maxVolumes, after?.maxVolumes),
    // Topology is narrower where a volume that is within reach of the old segments would not be of the new ones.
    ...Object.entries(before.topology ?? {}).flatMap(([key, value]) =>
      changed(`topology ${key}`, value, after?.topology?.[key]),
    ),
  ]
}

function lostCapabilities(before: Capabilities, after: Capabilities | undefined): string[] {
  const isLost = <T>(has: readonly T[] = []) => {
    const kept = new Set(has)
    return (one: T): boolean => !kept.has(one)
  }
  const lost = [...before.names.filter(isLost(after?.names)), ...before.unknown.filter(isLost(after?.unknown))]
  return lost.map((one) => `capability ${one}`)
}

/** Absent means that there is no limit. */
function lostRoom(before = Infinity, after = Infinity): string[] {
  if (after >= before) return []
  return [`room for ${before === Infinity ? 'any number of' : before} volumes (it would be ${after})`]
}

function changed(what: string, before: string, after: string | undefined): string[] {
  return before === after ? [] : [`${what} ${before} (it would be ${after ?? 'none'})`]
}
