import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PlugstreamError } from '../errors.js'

/** Where a host keeps its own store. */
export function storeFile(stateDir: string): string {
  return join(stateDir, 'state.sqlite')
}

/**
 * Makes a directory that a host is given, for its owner alone. One that is there already keeps its mode: it may be shared on purpose.
 * @param field the option that names it.
 * @throws ERR_OPTION_INVALID where it cannot be made.
 */
export async function makeHostDirectory(field: string, path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_OPTION_INVALID', `making ${field} ${path}`, { details: { field } })
  }
}
