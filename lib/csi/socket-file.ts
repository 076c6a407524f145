import { randomBytes } from 'node:crypto'
import { lstatSync, unlinkSync } from 'node:fs'
import { chmod, link, rename, rm } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname, isAbsolute, join } from 'node:path'
import { socketPathLimitBytes } from '../defaults.js'
import { PlugstreamError, invalidOption } from '../errors.js'

/** The file of a listening unix socket. */
export interface SocketFile {
  readonly socketPath: string
  /** Removes the file if it still is this server's own; what another server put there since stays. Idempotent. */
  remove(): void
}

/**
 * Makes `server` listen on a unix socket that only its user may open (mode 0600). A dead socket on the path is taken away; the
 * directory has to be there.
 *
 * The socket is bound under another name beside it and comes to its own name when all is set: nobody meets it half ready, and the
 * unlink that libuv does at close hits the name it was bound under, not whatever is on the path by then.
 *
 * @throws ERR_OPTION_INVALID for a relative path, ERR_SOCKET_PATH for one that is too long, ERR_SOCKET where a live server or anything
 * but a socket is on the path, or the socket cannot be bound.
 */
export async function listenOnSocketFile(server: Server, socketPath: string): Promise<SocketFile> {
  checkSocketPath(socketPath)
  await removeDeadSocket(socketPath)
  const boundPath = await listenBeside(server, socketPath)
  try {
    await chmod(boundPath, 0o600)
    const identity = identityAt(boundPath)
    await moveToFreePath(boundPath, socketPath)
    return { socketPath, remove: () => removeIfStill(socketPath, identity) }
  } catch (failure) {
    await new Promise((resolve) => server.close(resolve))
    throw PlugstreamError.from(failure, 'ERR_SOCKET', `the socket ${socketPath} could not be made`)
  }
}

/**
 * Takes a socket away that nobody listens on. Nothing on the path is fine.
 *
 * @throws ERR_SOCKET where somebody listens, where that cannot be told, or where something else than a socket is on the path.
 */
export async function removeDeadSocket(socketPath: string): Promise<void> {
  const identity = identityAt(socketPath)
  if (identity === undefined) return
  if (identity === 'not-a-socket') throw socketError(socketPath, 'something else than a socket is there')
  const refusal = await refusalAt(socketPath)
  if (refusal === undefined) throw socketError(socketPath, 'a live server is on it')
  // Another server may have been faster while this one knocked; then the socket is another one.
  if (refusal.code === 'ECONNREFUSED' || refusal.code === 'ENOENT') removeIfStill(socketPath, identity)
  else throw socketError(socketPath, `it cannot be told whether it is dead: ${refusal.message}`)
}

/**
 * Checks a socket's path before anything is done with it.
 *
 * @throws ERR_OPTION_INVALID, ERR_SOCKET_PATH.
 */
export function checkSocketPath(socketPath: string): void {
  if (typeof socketPath !== 'string' || !isAbsolute(socketPath) || socketPath.includes('\0')) {
    throw invalidOption('socketPath', socketPath, 'an absolute path')
  }
  const lengthBytes = Buffer.byteLength(socketPath)
  if (lengthBytes <= socketPathLimitBytes) return
  const message = `the socket path has ${lengthBytes} bytes, the limit is ${socketPathLimitBytes}: ${socketPath}`
  throw new PlugstreamError('ERR_SOCKET_PATH', message, { details: { lengthBytes, limitBytes: socketPathLimitBytes } })
}

async function listenBeside(server: Server, socketPath: string): Promise<string> {
  const directory = dirname(socketPath)
  if (!lstatSync(directory, { throwIfNoEntry: false })) throw socketError(socketPath, 'its directory does not exist')
  // The name has to fit the limit as well; where the path leaves little room, a name may be taken, and another is tried.
  const room = Math.min(socketPathLimitBytes - Buffer.byteLength(join(directory, '/')), 16)
  for (let attempt = 1; ; attempt++) {
    const boundPath = join(directory, randomBytes(8).toString('hex').slice(0, room))
    if (boundPath === socketPath) continue
    try {
      await listen(server, boundPath)
      return boundPath
    } catch (failure) {
      if (codeOf(failure) === 'EADDRINUSE' && attempt < 16) continue
      throw PlugstreamError.from(failure, 'ERR_SOCKET', `the socket ${socketPath} could not be bound`)
    }
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** A link fails where another server was faster; a rename would take its place. Some file systems have no links, and take the rename. */
async function moveToFreePath(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (failure) {
    if (codeOf(failure) === 'EEXIST') throw socketError(to, 'another server was faster')
    return rename(from, to)
  }
  await rm(from)
}

/** How a connection to the socket is refused, or nothing where somebody is there. */
function refusalAt(socketPath: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const connection = connect({ path: socketPath }, () => connection.destroy())
    let refusal: NodeJS.ErrnoException | undefined
    connection.once('error', (failure) => (refusal = failure))
    connection.once('close', () => resolve(refusal))
  })
}

function removeIfStill(socketPath: string, identity: string | undefined): void {
  if (identity !== undefined && identityAt(socketPath) === identity) unlinkSync(socketPath)
}

/** Device, inode and birth time of the socket itself, links not followed. */
function identityAt(socketPath: string): string | undefined {
  const found = lstatSync(socketPath, { bigint: true, throwIfNoEntry: false })
  if (!found) return undefined
  return found.isSocket() ? `${found.dev}:${found.ino}:${found.birthtimeNs}` : 'not-a-socket'
}

function socketError(socketPath: string, why: string): PlugstreamError {
  return new PlugstreamError('ERR_SOCKET', `the socket ${socketPath} is not free: ${why}`, { details: { socketPath } })
}

function codeOf(failure: unknown): string | undefined {
  return (failure as NodeJS.ErrnoException).code
}
