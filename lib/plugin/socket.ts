/** What is seen at a socket's path, without connecting. `identity` changes when another server binds the path, and not with a chmod. */
export type SocketSight =
  | { kind: 'socket'; identity: string }
  | { kind: 'missing' }
  | { kind: 'not-a-socket' }
  | { kind: 'denied'; description: string }

/** What a plain connect to the path comes to. Never thrown. */
export type DialAnswer =
  { kind: 'connected' } | { kind: 'missing' | 'refused' | 'denied' | 'not-a-socket' | 'failed'; description: string }
