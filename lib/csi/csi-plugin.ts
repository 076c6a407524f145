import { posix } from 'node:path'
import * as defaults from '../defaults.js'
import { invalidOption } from '../errors.js'
import { strangeField } from '../options.js'
import type { CsiPluginConfig } from '../task/task.js'
import { parseDuration } from './duration.js'

/** The longest a timer of Node can wait; about 25 days. */
const longestTimeoutMs = 2 ** 31 - 1

const types = ['controller', 'node', 'monolith'] as const

/** Each field under our name, and under Nomad's. */
const names = {
  id: ['id'],
  type: ['type'],
  mountDir: ['mountDir', 'mount_dir'],
  stagePublishBaseDir: ['stagePublishBaseDir', 'stage_publish_base_dir'],
  healthTimeoutMs: ['healthTimeoutMs', 'health_timeout'],
  initTimeoutMs: ['initTimeoutMs', 'init_timeout'],
} as const satisfies Record<keyof CsiPluginConfig, readonly string[]>

/** A field as it was found: under which name, for the words of an error. */
interface Found {
  field: string
  name: string
  value: unknown
}

/**
 * Reads the `csi_plugin` block of a task, in our words (`mountDir`, `healthTimeoutMs: 30_000`) or in Nomad's (`mount_dir`,
 * `health_timeout = "30s"`). What is left out stays out; paths come back without needless slashes.
 *
 * @param at what to call the block in errors.
 * @throws ERR_OPTION_INVALID naming the field, also for one that is not known.
 */
export function parseCsiPlugin(block: unknown, at = 'csiPlugin'): CsiPluginConfig {
  if (block === null || typeof block !== 'object' || Array.isArray(block)) throw invalidOption(at, block, 'an object')
  const found = fieldsOf(block, at)
  const { mountDir, stagePublishBaseDir, healthTimeoutMs, initTimeoutMs } = found
  const config: CsiPluginConfig = {
    id: idOf(found.id ?? missing('id', at)),
    type: typeOf(found.type ?? missing('type', at)),
    ...(mountDir && { mountDir: dirOf(mountDir) }),
    ...(stagePublishBaseDir && { stagePublishBaseDir: dirOf(stagePublishBaseDir) }),
    ...(healthTimeoutMs && { healthTimeoutMs: timeoutOf(healthTimeoutMs) }),
    ...(initTimeoutMs && { initTimeoutMs: timeoutOf(initTimeoutMs) }),
  }
  const outer = config.mountDir ?? defaults.mountDir
  const inner = config.stagePublishBaseDir ?? defaults.stagePublishBaseDir
  if (inner === outer || inner.startsWith(`${outer}/`)) {
    const field = stagePublishBaseDir?.field ?? mountDir?.field ?? at
    throw invalidOption(field, stagePublishBaseDir ? inner : outer, `such that ${inner} is not inside ${outer}`)
  }
  return config
}

function fieldsOf(block: object, at: string): Partial<Record<keyof CsiPluginConfig, Found>> {
  const fields: Partial<Record<keyof CsiPluginConfig, Found>> = {}
  for (const [name, value] of Object.entries(block) as [string, unknown][]) {
    const field = `${at}.${name}`
    const key = Object.entries(names).find(([, known]) => (known as readonly string[]).includes(name))?.[0]
    if (key === undefined) throw strangeField(field, Object.keys(names))
    if (value === undefined || value === null) continue
    const other = fields[key as keyof CsiPluginConfig]
    if (other) throw invalidOption(field, value, `left out where ${other.name} is given`)
    fields[key as keyof CsiPluginConfig] = { field, name, value }
  }
  return fields
}

function missing(name: string, at: string): Found {
  return { field: `${at}.${name}`, name, value: undefined }
}

/** Any text at all: whoever makes paths or keys of it escapes it. Broken characters would all be stored as the same one. */
function idOf({ field, value }: Found): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0') || Buffer.from(value).toString() !== value)
    throw invalidOption(field, value, 'a text that is not empty, without NUL and without half characters')
  return value
}

function typeOf({ field, value }: Found): CsiPluginConfig['type'] {
  const type = types.find((known) => known === value)
  if (!type) throw invalidOption(field, value, `one of ${types.join(', ')}`)
  return type
}

function dirOf({ field, value }: Found): string {
  const allowed = 'an absolute path below /, without .. in it'
  if (typeof value !== 'string' || !value.startsWith('/') || value.includes('\0'))
    throw invalidOption(field, value, allowed)
  if (value.split('/').includes('..')) throw invalidOption(field, value, allowed)
  const path = posix.normalize(value).replace(/\/$/, '')
  if (path === '') throw invalidOption(field, value, allowed)
  return path
}

function timeoutOf({ field, name, value }: Found): number {
  const isOurs = name.endsWith('Ms')
  const timeoutMs = isOurs ? value : typeof value === 'string' ? parseDuration(value) : undefined
  if (typeof timeoutMs === 'number' && timeoutMs >= 1 && timeoutMs <= longestTimeoutMs) return timeoutMs
  throw invalidOption(
    field,
    value,
    isOurs ? `a number of ms from 1 to ${longestTimeoutMs}` : 'a duration, as 30s or 1m30s',
  )
}
