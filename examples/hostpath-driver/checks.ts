import { isAbsolute } from 'node:path'
import { status } from 'plugstream/csi'
import type { Kind } from './state.js'

interface Capability {
  access_type?: Kind
  access_mode: { mode: string } | null
}

/** A field that has to be there. */
export function required<T>(field: string, value: T | null | undefined): NonNullable<T> {
  const missing = value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  if (missing) throw status('INVALID_ARGUMENT', `${field} is missing`)
  return value
}

/** A path that has to be there, and to lead where it says. */
export function requiredPath(field: string, path: string): string {
  if (!isAbsolute(required(field, path)) || path.split('/').includes('..') || path.includes('\0')) {
    throw status('INVALID_ARGUMENT', `${field} is ${JSON.stringify(path)}; it must be an absolute path without ..`)
  }
  return path
}

/** Why this driver cannot give such access, or nothing. */
export function objection({ access_type, access_mode }: Capability, blockSupported: boolean): string {
  if (!access_type) return 'access_type is missing'
  if (access_type === 'block' && !blockSupported)
    return 'only access_type mount is supported: there are no loop devices'
  if (!access_mode?.mode.startsWith('SINGLE_NODE_')) return 'only access from a single node is supported'
  return ''
}

/** The kind of volume that is asked for. */
export function kindOf(capability: Capability | null, blockSupported: boolean): Kind {
  const found = objection(required('volume_capability', capability), blockSupported)
  if (found) throw status('INVALID_ARGUMENT', found)
  return capability?.access_type ?? 'mount'
}

/** The access that is asked for has to be of the volume's kind. */
export function checkKind(volume: { id: string; kind: Kind }, kind: Kind): void {
  if (volume.kind !== kind) throw status('INVALID_ARGUMENT', `volume ${volume.id} is a ${volume.kind} volume`)
}

export function checkMutableParameters(parameters: Record<string, string>): void {
  for (const [name, value] of Object.entries(parameters)) {
    if (name !== 'mode') throw status('INVALID_ARGUMENT', `mutable_parameters.${name} is not known; only mode is`)
    if (!/^[0-7]{3,4}$/.test(value))
      throw status('INVALID_ARGUMENT', 'mutable_parameters.mode must be three or four octal digits')
  }
}
