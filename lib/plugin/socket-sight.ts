import { stat } from 'node:fs/promises'
import { messageOf } from '../errors.js'
import type { SocketSight } from './socket.js'

/**
 * Looks at a socket's path once, without connecting; a symbolic link counts as what it points to. Never throws.
 *
 * The identity is device, inode and birth time: inodes are used again, and the change time moves with a chmod, which drivers do
 * right after they bind.
 */
export async function seeSocket(socketPath: string): Promise<SocketSight> {
  try {
    const found = await stat(socketPath, { bigint: true })
    if (!found.isSocket()) return { kind: 'not-a-socket' }
    return { kind: 'socket', identity: `${found.dev}:${found.ino}:${found.birthtimeNs}` }
  } catch (failure) {
    if (isAbsence(codeOf(failure))) return { kind: 'missing' }
    return { kind: 'denied', description: messageOf(failure) }
  }
}

/** The errors that say that nothing is at a path: no such name, a file where a directory belongs, links in a circle. */
export function isAbsence(code: string | undefined): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

/** The system's code of a failure, as in `ENOENT`. */
export function codeOf(failure: unknown): string | undefined {
  return (failure as NodeJS.ErrnoException | undefined)?.code
}
