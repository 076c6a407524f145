import type { ObservableInput } from 'rxjs'
import { memoryStore } from '../../lib/store/memory-store.js'
import type { StateStore, StoreWrite } from '../../lib/store/state-store.js'
import type { RegistryStore } from '../../streams/registry.js'

/** A store in memory that does on cue what stores do. */
export interface FakeStore extends RegistryStore {
  /** What is stored, key to JSON text. */
  readonly records: Map<string, string>
  /** Every batch that `save` was given. */
  readonly saves: (readonly StoreWrite[])[]
  readonly closed: boolean
  /** Takes the place of saving; call `keep` to save after all. Default: keeps, a turn later. */
  onSave: (batch: readonly StoreWrite[], keep: (batch: readonly StoreWrite[]) => void) => ObservableInput<unknown>
  onRead: (prefix: string, read: StateStore['read']) => ReturnType<StateStore['read']>
}

export function fakeStore(records = new Map<string, string>()): FakeStore {
  const memory = memoryStore(records)
  const saves: (readonly StoreWrite[])[] = []
  let closed = false
  const keep = (batch: readonly StoreWrite[]): void => {
    for (const write of batch) {
      if (write.kind === 'put') records.set(write.key, JSON.stringify(write.value))
      else records.delete(write.key)
    }
  }
  const fake: FakeStore = {
    atomic: true,
    records,
    saves,
    get closed() {
      return closed
    },
    onSave: async (batch) => keep(batch),
    onRead: (prefix, read) => read(prefix),
    read: (prefix) => fake.onRead(prefix, memory.read),
    save: (batch) => {
      saves.push(batch)
      return fake.onSave(batch, keep)
    },
    close: async () => {
      closed = true
    },
  }
  return fake
}

/** A promise, and what ends it. */
export interface Gate {
  readonly opened: Promise<void>
  open(): void
  fail(failure: unknown): void
}

export function gate(): Gate {
  let open = (): void => undefined
  let fail: (failure: unknown) => void = () => undefined
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}
