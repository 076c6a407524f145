import { posix } from 'node:path'
import { invalidOption } from './errors.js'

/** The longest a timer of Node can wait; about 25 days. */
const longestTimeoutMs = 2 ** 31 - 1

/** Any text at all: whoever makes paths or keys of it escapes it. Broken characters would all be stored as the same one. */
export function pluginIdAt(field: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0') || Buffer.from(value).toString() !== value)
    throw invalidOption(field, value, 'a text that is not empty, without NUL and without half characters')
  return value
}

/** A directory as a task sees it, without needless slashes. */
export function taskPathAt(field: string, value: unknown): string {
  const allowed = 'an absolute path below /, without .. in it'
  if (typeof value !== 'string' || !value.startsWith('/') || value.includes('\0'))
    throw invalidOption(field, value, allowed)
  if (value.split('/').includes('..')) throw invalidOption(field, value, allowed)
  const path = posix.normalize(value).replace(/\/$/, '')
  if (path === '') throw invalidOption(field, value, allowed)
  return path
}

export function timeoutAt(field: string, value: unknown): number {
  if (isTimeout(value)) return value
  throw invalidOption(field, value, `a number of ms from 1 to ${longestTimeoutMs}`)
}

export function isTimeout(value: unknown): value is number {
  return typeof value === 'number' && value >= 1 && value <= longestTimeoutMs
}
