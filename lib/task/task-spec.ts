import { invalidOption } from '../errors.js'
import type { TaskSpec } from './driver.js'
import { readRestartPolicy } from './restart-policy.js'
import type { TaskRef } from './task.js'

/** What is told to whoever runs a task by hand. */
export interface TaskOrder extends TaskRef {
  /**
   * `stop`: end it; it is forgotten then. `restart`: end it and start it again. `resume`: go on with one that is held, or waits for
   * its next try, at once. The last two clear what was counted against its restart policy.
   */
  order: 'stop' | 'restart' | 'resume'
}

const orders = ['stop', 'restart', 'resume']

/**
 * Checks what is to be run, or what is ordered, and gives it back.
 *
 * @throws ERR_OPTION_INVALID naming the field, its value and what is allowed; of `env` only the name is shown, and of the arguments
 * only the position.
 */
export function readTaskInput<Input extends TaskSpec | TaskOrder>(input: Input): Input {
  const given: unknown = input
  if (typeof given !== 'object' || given === null) throw invalidOption('task', given, 'a task or an order')
  const fields = given as Record<string, unknown>
  text('allocId', fields['allocId'])
  text('taskName', fields['taskName'])
  if ('order' in fields) {
    if (!orders.includes(fields['order'] as string))
      throw invalidOption('order', fields['order'], `one of ${orders.join(', ')}`)
    return input
  }
  readCommand(fields['command'])
  if (fields['cwd'] !== undefined) text('cwd', fields['cwd'])
  if (fields['isolation'] !== 'none' && fields['isolation'] !== 'image')
    throw invalidOption('isolation', fields['isolation'], 'none or image')
  readEnv(fields['env'])
  readGrace(fields['stopGraceMs'])
  readRestartPolicy(fields['restart'])
  return input
}

function text(field: string, value: unknown): void {
  if (typeof value !== 'string' || value === '' || value.includes('\0'))
    throw invalidOption(field, value, 'a text that is not empty and has no NUL in it')
}

function readCommand(command: unknown): void {
  if (!Array.isArray(command) || command.length === 0)
    throw invalidOption('command', command, 'a list of the program and its arguments')
  text('command[0]', command[0])
  const wrong = command.findIndex((part) => typeof part !== 'string' || part.includes('\0'))
  if (wrong >= 0) throw invalidOption(`command[${wrong}]`, typeof command[wrong], 'a text without NUL')
}

function readEnv(env: unknown): void {
  if (env === undefined) return
  if (typeof env !== 'object' || env === null || Array.isArray(env))
    throw invalidOption('env', env, 'an object of names and texts')
  for (const [name, value] of Object.entries(env)) {
    if (name === '' || /[=\0]/.test(name)) throw invalidOption('env', name, 'names without = and NUL')
    if (typeof value !== 'string' || value.includes('\0'))
      throw invalidOption(`env.${name}`, typeof value, 'a text without NUL')
  }
}

function readGrace(stopGraceMs: unknown): void {
  if (stopGraceMs === undefined) return
  if (typeof stopGraceMs !== 'number' || !(stopGraceMs >= 0 && stopGraceMs < 2 ** 31))
    throw invalidOption('stopGraceMs', stopGraceMs, 'a number from 0 to 2147483647')
}

/** Whether two tasks (or any plain values) are the same, whatever the order of their fields. A field that is `undefined` is one left out. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => sameValue((a as Fields)[name], (b as Fields)[name]))
}

/** A copy in which a later change of the original is not seen: of lists and plain objects all the way down; anything else stays itself. */
export function plainCopy<T>(value: T): T
export function plainCopy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((part: unknown) => plainCopy(part))
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plainCopy(part)]))
}

type Fields = Record<string, unknown>
