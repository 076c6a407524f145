/** What is seen at a socket's path, without connecting. `identity` changes when another server binds the path, and not with a chmod. */
export type SocketSight =
  | { kind: 'socket'; identity: string }
  | { kind: 'missing' }
  | { kind: 'not-a-socket' }
  | { kind: 'denied'; description: string }

/** What a plain connect to the path comes to. Never thrown. */
export type DialAnswer =
  { kind: 'connected' } | { kind: 'missing' | 'refused' | 'denied' | 'not-a-socket' | 'failed'; description: string }

/** What is seen in a directory of sockets. */
export interface DirectorySight {
  /** In the order of their paths, each with the identity that `SocketSight` has. */
  sockets: readonly { socketPath: string; identity: string }[]
  /** What could not be looked at: nothing is known of what is there, or below. */
  unseen: readonly { path: string; description: string }[]
}
