import { invalidOption, PlugstreamError } from './errors.js'

/**
 * The names of all fields of a type. The compiler sees to it that none is missing.
 *
 * @example const fields = fieldsOf<WaitOptions>({ signal: true, timeoutMs: true })
 */
export function fieldsOf<T>(all: Readonly<Record<Extract<keyof T, string>, true>>): readonly string[] {
  return Object.keys(all)
}

/** What more is to be said of the fields of an object. */
export interface FieldRules {
  /** Where the object is, in front of its fields' names, as in `timing`. Default: nowhere in particular. */
  below?: string
  /** Fields that are passed over: it may be a thing that has more to it. Default: none. */
  also?: readonly string[]
  /** What to say in the place of the names of all fields, by the strange one: where else its value belongs. */
  instead?: Readonly<Partial<Record<string, string>>>
}

/**
 * The door for an object of options. A field that there is not is refused, since one that is misspelt would be passed over without a word;
 * one that is `undefined` is one left out.
 *
 * @param name what to call the object where it is none.
 * @returns what was given.
 * @throws ERR_OPTION_INVALID naming the field.
 * @example const { signal, timeoutMs = 5_000 } = takeOptions('options', given, fields)
 */
export function takeOptions<T>(name: string, given: T, fields: readonly string[], rules?: FieldRules): T {
  if (!isObject(given)) throw invalidOption(name, given, 'an object')
  checkFields(given, fields, rules)
  return given
}

/** The same for the fields of what is known to be an object. */
export function checkFields(given: object, fields: readonly string[], rules: FieldRules = {}): void {
  const { below, also = [], instead = {} } = rules
  if (!isPlain(given)) return
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || fields.includes(name) || also.includes(name)) continue
    const other = Object.hasOwn(instead, name) ? instead[name] : undefined
    throw strangeField(below === undefined ? name : `${below}.${name}`, other ?? fields)
  }
}

/** A field that there is not. Its value is not shown, since nobody knows what it is: it may be a secret. */
export function strangeField(field: string, allowed: readonly string[] | string): PlugstreamError {
  const hint = typeof allowed === 'string' ? allowed : `there are ${allowed.join(', ') || 'none'}`
  return new PlugstreamError('ERR_OPTION_INVALID', `${field} is no field; ${hint}`, { details: { field } })
}

/** Those of the texts that have one of these names, in the order of the names. */
export function picked(texts: Readonly<Record<string, string>>, names: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(texts, name) ? [[name, texts[name] as string]] : [])),
  )
}

/** Any object but a list. */
export function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

/** One of a class may have more to it. */
function isPlain(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given)
  return prototype === Object.prototype || prototype === null
}

/**
 * A copy all the way down: its giver may use the value again.
 *
 * @throws ERR_OPTION_INVALID naming the field where it is not plain data.
 */
export function copied<T>(field: string, value: T): T {
  try {
    return structuredClone(value)
  } catch {
    throw invalidOption(field, value, 'plain data: no function, and no proxy')
  }
}

/** @throws ERR_OPTION_INVALID where it is none. */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption('signal', signal, 'an AbortSignal')
}
