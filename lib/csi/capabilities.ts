import type { Capabilities } from '../plugin/fingerprint.js'

/**
 * The capabilities of one list, each once and in order. An entry is a name, a number no name is known for, or nothing (drivers send
 * UNKNOWN, and entries without content).
 */
export function capabilitiesOf(entries: readonly (string | number | undefined)[]): Capabilities {
  const names = new Set<string>()
  const unknown = new Set<number>()
  for (const entry of entries) {
    if (typeof entry === 'number') unknown.add(entry)
    else if (entry !== undefined && entry !== 'UNKNOWN') names.add(entry)
  }
  return { names: [...names].sort(), unknown: [...unknown].sort((a, b) => a - b) }
}
