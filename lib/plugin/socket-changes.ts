import type { DirectorySight } from './socket.js'

/** What is different in a directory of sockets; and what is known of it now, from which the next difference is told. */
export interface SocketChanges {
  /** The sockets there are, and the identity of each. */
  known: ReadonlyMap<string, string>
  /** A socket that was not there before, or is another one; without an identity: it is not there any more. */
  changes: readonly { socketPath: string; identity: string | undefined }[]
  unseen: DirectorySight['unseen']
  /** What can no longer be looked at, and could be before. */
  newlyUnseen: DirectorySight['unseen']
}

/** What a sight changes. A socket of which nothing can be seen is taken to be there still. */
export function socketChanges(
  { known: before, unseen: unseenBefore }: Pick<SocketChanges, 'known' | 'unseen'>,
  { sockets, unseen }: DirectorySight,
): SocketChanges {
  const known = new Map(sockets.map(({ socketPath, identity }) => [socketPath, identity]))
  const came = sockets.filter(({ socketPath, identity }) => before.get(socketPath) !== identity)
  const went = [...before].filter(([socketPath, identity]) => {
    if (known.has(socketPath)) return false
    const isHidden = unseen.some(({ path }) => socketPath === path || socketPath.startsWith(`${path}/`))
    if (isHidden) known.set(socketPath, identity)
    return !isHidden
  })
  return {
    known,
    changes: [...came, ...went.map(([socketPath]) => ({ socketPath, identity: undefined }))],
    unseen,
    newlyUnseen: unseen.filter(({ path }) => !unseenBefore.some((one) => one.path === path)),
  }
}
