import { createHash } from 'node:crypto'

/** Longest escaped part. File systems allow 255 bytes a name; less leaves room in a socket's path. */
export const pathPartLimit = 120
const keptOfHashed = 60

/**
 * Any text as one part of a path: lower-case ASCII letters, digits, `_`, `-` and inner dots stay as they are, everything else becomes
 * `~` and its code. No two texts share a result, also where the file system takes upper and lower case or composed and decomposed
 * letters for the same. What would be longer than `pathPartLimit` keeps its beginning and gets a hash.
 *
 * `~` and not `%`, since many drivers read the path of their endpoint as a URL, where `%` would be decoded.
 *
 * @example escapePathPart('ebs/eu-1') // 'ebs~2feu-1'
 */
export function escapePathPart(text: string): string {
  if (text === '') return '~'
  if (text.length <= pathPartLimit && /^[a-z0-9_-][a-z0-9_.-]*$/.test(text)) return text
  let escaped = ''
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    escaped += /[a-z0-9_-]/.test(character) || (character === '.' && at > 0) ? character : code(text.charCodeAt(at))
  }
  if (escaped.length <= pathPartLimit) return escaped
  return `${escaped.slice(0, keptOfHashed)}~h${hashText(text).slice(0, 40)}`
}

/** A hash that tells any two texts apart, those with half a surrogate pair included, which have no UTF-8 of their own. */
export function hashText(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('hex')
}

/** `~` with two digits, or with `u` and four: `h` and a lone `~` are left for the other two forms. */
function code(unit: number): string {
  return unit < 0x100 ? `~${hex(unit, 2)}` : `~u${hex(unit, 4)}`
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
