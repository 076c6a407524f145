import { status } from 'plugstream/csi'

interface Capability {
  access_type?: string
  access_mode: { mode: string } | null
}

/** A field that has to be there. */
export function required<T>(field: string, value: T | null | undefined): NonNullable<T> {
  const missing = value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  if (missing) throw status('INVALID_ARGUMENT', `${field} is missing`)
  return value
}

/** Why this driver cannot give such access, or nothing. */
export function objection({ access_type, access_mode }: Capability): string {
  if (access_type !== 'mount') return 'only access_type mount is supported'
  if (!access_mode?.mode.startsWith('SINGLE_NODE_')) return 'only access from a single node is supported'
  return ''
}

export function checkCapability(capability: Capability | null): void {
  const found = objection(required('volume_capability', capability))
  if (found) throw status('INVALID_ARGUMENT', found)
}
