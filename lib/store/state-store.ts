/** One write of a batch. `value` is plain JSON data; what is stored is a copy. */
export type StoreWrite = { kind: 'put'; key: string; value: unknown } | { kind: 'delete'; key: string }

/** One record as it was found. `raw` is what the store holds, for setting it aside; a value that could not be read has an `error`. */
export type StoreRecord = { key: string; raw: unknown } & ({ value: unknown } | { error: unknown })

/**
 * Where records are kept. Every method rejects with ERR_STORE_READ or ERR_STORE_WRITE where the store fails, never answers a failure
 * with an empty result, and what is saved or read shares no memory with what the store holds. After `close` both reject with
 * ERR_CLOSED. A store of one's own can be held to this with `stateStoreSuite` of `plugstream/conformance`.
 */
export interface StateStore {
  /** A batch is saved whole or not at all. Where false, a failing `save` may have saved part of it. */
  readonly atomic: boolean
  /** Every record whose key starts with `prefix`, each decoded by itself, so that a broken one does not hide the others. */
  read(prefix: string): AsyncIterable<StoreRecord>
  /** Resolves when the whole batch is kept for good. Of two writes of one key the later one wins, also over two calls. */
  save(batch: readonly StoreWrite[]): Promise<void>
  /** Waits for what is being saved, then closes what the store opened itself. Idempotent. */
  close(): Promise<void>
}

/**
 * The part of a Keyv that is used; ESM and CommonJS Keyvs both fit, which is why it is told by its shape. The optional ones are used
 * where they are there.
 */
export interface KeyvLike {
  /** A Map, or an adapter that has an `iterator`. */
  readonly store: unknown
  readonly namespace?: string | undefined
  readonly useKeyPrefix?: boolean
  throwOnErrors?: boolean
  get(key: string): Promise<unknown>
  set(key: string, value: unknown, ttl?: number): Promise<unknown>
  delete(key: string): Promise<unknown>
  disconnect(): Promise<unknown>
  deserializeData?(raw: string): Promise<unknown>
}
