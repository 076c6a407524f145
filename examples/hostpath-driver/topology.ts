import { status } from 'plugstream/csi'

/** Where a node is, as in { zone: 'a', rack: '7' }. */
export type Segments = Record<string, string>

interface Topology {
  segments: Segments
}

/** @param options each as in `zone=a`. */
export function parseTopology(options: readonly string[]): Segments {
  return Object.fromEntries(
    options.map((option) => {
      const [, key, value] = /^([^=]+)=(.+)$/s.exec(option) ?? []
      if (key === undefined || value === undefined) throw new Error(`--topology is ${option}; it must be key=value`)
      return [key, value]
    }),
  )
}

/** Every segment that is asked for is one of here. */
export function isHere(here: Segments, { segments }: Topology): boolean {
  return Object.entries(segments).every(([key, value]) => here[key] === value)
}

/** All data is here: one of the places it has to be seen from must be, too. */
export function checkTopology(here: Segments, requirement: { requisite: Topology[] } | null): void {
  const requisite = requirement?.requisite ?? []
  if (requisite.length > 0 && !requisite.some((topology) => isHere(here, topology))) {
    throw status('RESOURCE_EXHAUSTED', `nothing can be kept there; all data is at ${JSON.stringify(here)}`)
  }
}
