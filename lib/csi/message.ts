import { checkFields } from '../options.js'
import { record, type Reads, type Writes } from './codec.js'

/** Fields whose names here are not those of the wire in camel case: instants end in `At`, and numbers say their unit. */
const renamed = {
  createdAt: 'creation_time',
  health: 'volume_condition',
  availableBytes: 'available_capacity',
  maximumVolumeBytes: 'maximum_volume_size',
  minimumVolumeBytes: 'minimum_volume_size',
  startingByteOffset: 'starting_offset',
} as const

type Snake<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${Snake<Rest>}`
  : Name
type WireName<Name extends string> = Name extends keyof typeof renamed ? (typeof renamed)[Name] : Snake<Name>

/** How each field is written, checked against the message of the wire: its name has to be there, and its form to fit. */
type RequestFields<T, Wire> = {
  readonly [Name in keyof T & string]-?: WireName<Name> extends keyof Wire
    ? Writes<T[Name], NonNullable<Wire[WireName<Name>]>>
    : never
}
type ResponseFields<Wire, T> = {
  readonly [Name in keyof T & string]-?: WireName<Name> extends keyof Wire
    ? Reads<Wire[WireName<Name>], T[Name]>
    : never
}

type AnyField = Partial<Writes<unknown, unknown> & Reads<unknown, unknown>>

function wireName(name: string): string {
  return Object.hasOwn(renamed, name)
    ? renamed[name as keyof typeof renamed]
    : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function fieldsOf(fields: object): { name: string; wire: string; field: AnyField }[] {
  return Object.entries(fields as Record<string, AnyField>).map(([name, field]) => ({
    name,
    wire: wireName(name),
    field,
  }))
}

const below = (field: string, name: string): string => (field === '' ? name : `${field}.${name}`)

/** A message of a request. A field it does not have is refused, since the loader would leave it out without a word. */
export function request<T extends object, Wire extends object>(
  fields: RequestFields<T, Wire>,
): Writes<T | undefined, Wire> & { readonly fields: readonly string[] } {
  const own = fieldsOf(fields)
  const names = own.map(({ name }) => name)
  return {
    fields: names,
    write: (value, at) => {
      if (value === undefined) return undefined
      const values = record(value, at)
      checkFields(values, names, at === '' ? {} : { below: at })
      const wire: Record<string, unknown> = {}
      for (const { name, wire: key, field } of own) {
        const written = field.write?.(values[name], below(at, name))
        if (written !== undefined) wire[key] = written
      }
      return wire as Wire
    },
  }
}

/** A message of an answer. */
export function response<T extends object, Wire extends object>(fields: ResponseFields<Wire, T>): Reads<Wire, T> {
  const own = fieldsOf(fields)
  return {
    read: (wire, at) => {
      const value: Record<string, unknown> = {}
      for (const { name, wire: key, field } of own) {
        const one = field.read?.((wire as Record<string, unknown>)[key], below(at, name))
        if (one !== undefined) value[name] = one
      }
      return value as T
    },
  }
}

/** The request of a call that asks for nothing in particular. */
export type NoFields = Readonly<Record<string, never>>

/** A message with nothing in it. */
export const nothing: Writes<NoFields | undefined, object> & Reads<object, undefined> = {
  write: request<object, object>({}).write,
  read: () => undefined,
}
