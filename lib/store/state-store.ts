/** One write of a batch. `value` is plain JSON data; what is stored is a copy. */
export type StoreWrite = { kind: 'put'; key: string; value: unknown } | { kind: 'delete'; key: string }

/** One record as it was found. `raw` is what the store holds, for setting it aside; a value that could not be read has an `error`. */
export type StoreRecord = { key: string; raw: unknown } & ({ value: unknown } | { error: unknown })

/**
 * Where records are kept. Every method rejects with ERR_STORE_READ or ERR_STORE_WRITE where the store fails, never answers a failure
 * with an empty result, and what is saved or read shares no memory with what the store holds.
 */
export interface StateStore {
  /** A batch is saved whole or not at all. Where false, a failing `save` may have saved part of it. */
  readonly atomic: boolean
  /** Every record whose key starts with `prefix`, each decoded by itself, so that a broken one does not hide the others. */
  read(prefix: string): AsyncIterable<StoreRecord>
  /** Resolves when the whole batch is kept for good. Later writes of one key win. */
  save(batch: readonly StoreWrite[]): Promise<void>
  /** Closes what the store opened itself. Idempotent. */
  close(): Promise<void>
}

/** The part of a Keyv that is used; ESM and CommonJS Keyvs both fit, which is why it is told by its shape. */
export interface KeyvLike {
  readonly store: unknown
  get(key: string): Promise<unknown>
  set(key: string, value: unknown): Promise<unknown>
  delete(key: string): Promise<unknown>
  disconnect(): Promise<unknown>
}
