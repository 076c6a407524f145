import { invalidOption } from '../errors.js'
import { keyvStore } from './keyv-store.js'
import type { KeyvLike, StateStore } from './state-store.js'

/**
 * What was handed in as a store, told apart by its shape: a store stays what it is, a Keyv gets one around it. Closing that one does
 * not disconnect the Keyv, which stays its owner's.
 *
 * @throws ERR_OPTION_INVALID where it is neither, or a Keyv whose adapter cannot iterate.
 */
export function openStore(given: KeyvLike | StateStore): StateStore
/** The same for a store whose `save` gives something else than a promise. */
export function openStore<Store extends Omit<StateStore, 'save'>>(given: KeyvLike | Store): StateStore | Store
export function openStore<Store>(given: KeyvLike | Store): StateStore | Store {
  if (has(given, ['read', 'save', 'close'])) return given as Store
  if (has(given, ['get', 'set', 'delete'])) return keyvStore(given as KeyvLike)
  throw invalidOption('store', given, 'a Keyv or a state store')
}

function has(given: unknown, methods: readonly string[]): boolean {
  const object = Object(given) as Record<string, unknown>
  return methods.every((method) => typeof object[method] === 'function')
}
