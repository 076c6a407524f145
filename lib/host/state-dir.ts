import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PlugstreamError } from '../errors.js'

/** Where a host keeps its own store. */
export function storeFile(stateDir: string): string {
  return join(stateDir, 'state.sqlite')
}

/**
 * Makes the state directory, for its owner alone. One that is there already keeps its mode: it may be shared on purpose.
 * @throws ERR_OPTION_INVALID where it cannot be made.
 */
export async function makeStateDir(stateDir: string): Promise<void> {
  try {
    await mkdir(stateDir, { recursive: true, mode: 0o700 })
  } catch (failure) {
    throw PlugstreamError.from(failure, 'ERR_OPTION_INVALID', `making stateDir ${stateDir}`, {
      details: { field: 'stateDir' },
    })
  }
}
