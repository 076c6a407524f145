import { invalidOption } from '../errors.js'
import type { StoreWrite } from './state-store.js'
import { writeFailed } from './store-error.js'

/**
 * What a batch comes to: the last write of each key.
 *
 * @param reserved the prefix a Keyv puts in front of keys; it takes a key that begins with it for one that has it already.
 * @throws ERR_OPTION_INVALID for a text that cannot be a key: engines hold keys as UTF-8, in which texts with halves of surrogate
 * pairs become one another.
 */
export function foldBatch(batch: readonly StoreWrite[], reserved = ''): readonly StoreWrite[] {
  const last = new Map<string, StoreWrite>()
  for (const write of batch) {
    const { key } = write
    if (key === '' || /\p{Surrogate}/u.test(key)) throw invalidOption('key', key, 'well-formed text, not empty')
    if (reserved !== '' && key.startsWith(reserved))
      throw invalidOption('key', key, `a text not beginning with "${reserved}"`)
    last.set(key, write)
  }
  return [...last.values()]
}

/**
 * A value as JSON text.
 * @throws ERR_STORE_WRITE where it is no plain data.
 */
export function plainText(key: string, value: unknown): string {
  try {
    const text = JSON.stringify(value ?? null) as string | undefined // a function has none
    if (text !== undefined) return text
    throw new Error('it is no plain data')
  } catch (cause) {
    throw writeFailed(`saving ${key}`, cause, { key })
  }
}
