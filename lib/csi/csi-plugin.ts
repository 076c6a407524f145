import * as defaults from '../defaults.js'
import { invalidOption } from '../errors.js'
import { strangeField } from '../options.js'
import { isTimeout, pluginIdAt, taskPathAt, timeoutAt } from '../plugin-settings.js'
import type { CsiPluginConfig } from '../task/task.js'
import { parseDuration } from './duration.js'

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
    id: read(pluginIdAt, found.id ?? missing('id', at)),
    type: typeOf(found.type ?? missing('type', at)),
    ...(mountDir && { mountDir: read(taskPathAt, mountDir) }),
    ...(stagePublishBaseDir && { stagePublishBaseDir: read(taskPathAt, stagePublishBaseDir) }),
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

function read<T>(reader: (field: string, value: unknown) => T, { field, value }: Found): T {
  return reader(field, value)
}

function missing(name: string, at: string): Found {
  return { field: `${at}.${name}`, name, value: undefined }
}

function typeOf({ field, value }: Found): CsiPluginConfig['type'] {
  const type = types.find((known) => known === value)
  if (!type) throw invalidOption(field, value, `one of ${types.join(', ')}`)
  return type
}

function timeoutOf({ field, name, value }: Found): number {
  if (name.endsWith('Ms')) return timeoutAt(field, value)
  const timeoutMs = typeof value === 'string' ? parseDuration(value) : undefined
  if (isTimeout(timeoutMs)) return timeoutMs
  throw invalidOption(field, value, 'a duration, as 30s or 1m30s')
}
