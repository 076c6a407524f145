import { invalidOption, PlugstreamError } from '../errors.js'

/** Puts a value of a request into the form of the wire; undefined leaves the field out. `field` is its name in the words of the caller. */
export interface Writes<T, Wire> {
  readonly write: (value: T, field: string) => Wire | undefined
}

/** Reads a field of an answer. What the wire has no presence for is read as its zero: an empty text, 0, an empty list. */
export interface Reads<Wire, T> {
  readonly read: (wire: Wire, field: string) => T
}

/** Both ways. A value that is left out is left out on the wire. */
export interface Codec<T, In, Out> extends Writes<T | undefined, In>, Reads<Out, T> {}

/** Texts by name. */
export type TextMap = Readonly<Record<string, string>>

/** Lets what is left out pass, and makes the rest sure of its type. */
function given<T, In>(write: (value: T, field: string) => In): Writes<T | undefined, In>['write'] {
  return (value, field) => (value === undefined ? undefined : write(value, field))
}

export const text: Codec<string, string, string> = {
  write: given((value, field) => {
    if (typeof value !== 'string') throw invalidOption(field, value, 'a text')
    return value
  }),
  read: (wire) => wire,
}

/** An absolute path as the plugin sees it. */
export const path: Writes<string | undefined, string> = {
  write: given((value, field) => {
    if (typeof value === 'string' && value.startsWith('/') && !value.includes('\0')) return value
    throw invalidOption(field, value, 'an absolute path')
  }),
}

export const flag: Codec<boolean, boolean, boolean> = {
  write: given((value, field) => {
    if (typeof value !== 'boolean') throw invalidOption(field, value, 'true or false')
    return value
  }),
  read: (wire) => wire,
}

const largestInt64 = 2n ** 63n - 1n
const largestInt32 = 2 ** 31 - 1

/** A size or a place in bytes; never negative in a request. Read as it is. */
export const int64: Codec<bigint, string, string> = {
  write: given((value, field) => {
    if (typeof value === 'bigint' && value >= 0n && value <= largestInt64) return value.toString()
    throw invalidOption(field, value, `a bigint from 0 to ${largestInt64.toString()}`)
  }),
  read: BigInt,
}

/** A count in a request. */
export const count: Writes<number | undefined, number> = {
  write: given((value, field) => {
    if (Number.isInteger(value) && value >= 0 && value <= largestInt32) return value
    throw invalidOption(field, value, `a whole number from 0 to ${largestInt32}`)
  }),
}

/** A timestamp as Unix ms. */
export const instant: Reads<{ seconds: string; nanos: number } | null, number | undefined> = {
  read: (wire) => (wire ? Number(wire.seconds) * 1_000 + Math.floor(wire.nanos / 1_000_000) : undefined),
}

/** What is in a map is never shown: secrets have this form, too. */
export const textMap: Codec<TextMap, Record<string, string>, Record<string, string>> = {
  write: given((value, field) => {
    const entries = Object.entries(record(value, field))
    for (const [key, one] of entries) if (typeof one !== 'string') throw unfit(`${field}.${key}`, 'must be a text')
    return { ...value }
  }),
  read: (wire) => wire,
}

/** What there is of a codec; the types of the combinators say which. */
type Parts = Partial<Writes<never, unknown> & Reads<never, unknown>>
type AnyParts = Partial<Writes<unknown, unknown> & Reads<unknown, unknown>>

type ListOf<C> = (C extends Writes<infer T, infer In>
  ? Writes<readonly Exclude<T, undefined>[] | undefined, In[]>
  : unknown) &
  (C extends Reads<infer Out, infer T> ? Reads<readonly Out[], readonly T[]> : unknown)

/** A list, in order. Never absent in an answer. */
export function list<C extends Parts>(item: C): ListOf<C> {
  const { write, read } = item as object as AnyParts
  return {
    write: given((value: readonly unknown[], field) => {
      if (!Array.isArray(value)) throw unfit(field, 'must be a list')
      return value.map((one: unknown, at) => {
        if (one === undefined || one === null) throw unfit(`${field}[${at}]`, 'must be given')
        return write?.(one, `${field}[${at}]`)
      })
    }),
    read: (wire: readonly unknown[], field: string) => wire.map((one, at) => read?.(one, `${field}[${at}]`)),
  } as ListOf<C>
}

/** One of the names of an enum. `names` is the generated enum: no name is written down twice. */
export function enumName<Name extends string>(
  names: Readonly<Record<Name, Name>>,
): Writes<KnownName<Name> | undefined, KnownName<Name>> & Reads<string, KnownName<Name> | 'UNKNOWN' | number> {
  const isUnknown = (name: string): boolean => name.startsWith('UNKNOWN')
  const known = Object.keys(names).filter((name) => !isUnknown(name))
  return {
    write: given((value, field) => {
      if (known.includes(value)) return value
      throw invalidOption(field, value, `one of ${known.join(', ')}`)
    }),
    // The loader gives the number of a value that has no name.
    read: (wire) => (typeof wire === 'string' && isUnknown(wire) ? 'UNKNOWN' : (wire as KnownName<Name>)),
  }
}

/** The names of an enum without its zero. */
export type KnownName<Name> = Exclude<Name, `UNKNOWN${string}` | number>

/** What is in one of the wrappers that tell absent from zero. */
export function wrapped<T>({ read }: Reads<never, T>): Reads<{ value: unknown } | null, T | undefined> {
  return { read: (wire, field) => (wire ? read(wire.value as never, field) : undefined) }
}

type RequiredOf<C> = (C extends Writes<infer T, infer In> ? Writes<Exclude<T, undefined>, In> : unknown) &
  (C extends Reads<infer Out, infer T> ? Reads<Out | null | undefined, Exclude<T, undefined>> : unknown)

/** A field that has to be there: refused where it is missing or empty, in a request and in an answer. */
export function required<C extends Parts>(codec: C): RequiredOf<C> {
  const { write, read } = codec as object as AnyParts
  return {
    write: (value: unknown, field: string) => {
      if (isEmpty(value)) throw unfit(field, 'must be given')
      return write?.(value, field)
    },
    read: (wire: unknown, field: string) => {
      if (isEmpty(wire)) throw new PlugstreamError('ERR_CSI_PROTOCOL', `${field} is missing`, { details: { field } })
      return read?.(wire, field)
    },
  } as RequiredOf<C>
}

/** A field of an answer whose zero means that it is not there. */
export function optional<Out, T>({ read }: Reads<Out, T>): Reads<Out | null | undefined, T | undefined> {
  return {
    read: (wire, field) =>
      wire === null || wire === undefined || wire === '' || wire === '0' ? undefined : read(wire, field),
  }
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** A request value that is no object is refused before its fields are looked at. */
export function record(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw unfit(field || 'request', 'must be an object')
}

/** A refusal that does not show the value. */
export function unfit(field: string, words: string): PlugstreamError {
  return new PlugstreamError('ERR_OPTION_INVALID', `${field} ${words}`, { details: { field } })
}
