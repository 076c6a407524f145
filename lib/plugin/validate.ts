import { isAbsolute } from 'node:path'
import { socketPathLimitBytes } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import { checkFields, fieldsOf as namesOf, isObject, takeOptions } from '../options.js'
import type { PluginInfo, PluginRef, RegistryChange } from './plugin.js'

/** What a registration says, whole and frozen: all of a PluginInfo but what the registry itself adds. */
export type PluginDefinition = Omit<PluginInfo, 'registeredAt'>

/** A change that was found good, in memory of its own. A `generation` limits a deregistration to one registration of its ref. */
export type ValidChange = { kind: 'register'; plugin: PluginDefinition } | Update | Deregistration

export type Update = Extract<RegistryChange, { kind: 'update' }>

export interface Deregistration {
  kind: 'deregister'
  ref: PluginRef
  reason?: string
  generation?: number
}

/**
 * Reads what was given as a registration. What is left out is empty; a `registeredAt` is the registry's to give and is passed over.
 * @throws ERR_OPTION_INVALID naming the field; ERR_SOCKET_PATH where the path is longer than the platform takes.
 */
export function validDefinition(given: unknown): PluginDefinition {
  const plugin = fieldsOf('plugin', given)
  const connection = fieldsOf('connection', plugin['connection'])
  return Object.freeze({
    type: validName('type', plugin['type']),
    name: validName('name', plugin['name']),
    allocId: validName('allocId', plugin['allocId']),
    version: text('version', plugin['version'] ?? ''),
    provider: text('provider', plugin['provider'] ?? ''),
    connection: Object.freeze({ socketPath: validSocketPath(connection['socketPath']) }),
    options: validOptions(plugin['options'] ?? {}),
  })
}

const infoFields = namesOf<PluginInfo>({
  type: true,
  name: true,
  allocId: true,
  version: true,
  provider: true,
  connection: true,
  options: true,
  registeredAt: true,
})

/** The same where somebody asks for it: a field that there is not is refused, as it may be one that is misspelt. */
export function validRegistration(given: unknown): PluginDefinition {
  const definition = validDefinition(given)
  const { connection } = takeOptions('plugin', given as PluginInfo, infoFields)
  checkFields(connection, ['socketPath'], { below: 'connection' })
  return definition
}

/** What is registered: what a registration says, and since when. */
export function pluginInfo(definition: PluginDefinition, registeredAt: number): PluginInfo {
  const { type, name, allocId, version, provider, connection, options } = definition
  return Object.freeze({ type, name, allocId, version, provider, connection, options, registeredAt })
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function validRef(given: unknown): PluginRef {
  const ref = fieldsOf('ref', given)
  return {
    type: validName('type', ref['type']),
    name: validName('name', ref['name']),
    allocId: validName('allocId', ref['allocId']),
  }
}

/** @throws ERR_OPTION_INVALID naming the field; ERR_SOCKET_PATH. */
export function validChange(given: unknown): ValidChange {
  const change = fieldsOf('change', given)
  if (change['kind'] === 'register') return { kind: 'register', plugin: validRegistration(change['plugin']) }
  if (change['kind'] === 'update') {
    const said = { version: text('version', change['version']), provider: text('provider', change['provider']) }
    return { kind: 'update', ref: validRef(change['ref']), ...said }
  }
  if (change['kind'] !== 'deregister')
    throw invalidOption('kind', change['kind'], `'register', 'update' or 'deregister'`)
  return validDeregistration(change['ref'], change['reason'])
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function validDeregistration(ref: unknown, reason: unknown): Deregistration {
  return { kind: 'deregister', ref: validRef(ref), ...(reason === undefined ? {} : { reason: text('reason', reason) }) }
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function validName(field: string, given: unknown): string {
  if (typeof given !== 'string' || given === '') throw invalidOption(field, given, 'a text that is not empty')
  return given
}

function validSocketPath(given: unknown): string {
  const field = 'connection.socketPath'
  const path = validName(field, given)
  if (!isAbsolute(path) || path.includes('\0')) throw invalidOption(field, path, 'an absolute path')
  const lengthBytes = Buffer.byteLength(path)
  if (lengthBytes <= socketPathLimitBytes) return path
  throw new PlugstreamError(
    'ERR_SOCKET_PATH',
    `${field} has ${lengthBytes} bytes; the path of a unix socket has at most ${socketPathLimitBytes}: ${path}`,
    { details: { field, lengthBytes, limitBytes: socketPathLimitBytes } },
  )
}

function validOptions(given: unknown): PluginInfo['options'] {
  const options = fieldsOf('options', given)
  return Object.freeze(
    Object.fromEntries(Object.entries(options).map(([key, value]) => [key, text(`options.${key}`, value)])),
  )
}

function fieldsOf(field: string, given: unknown): Record<string, unknown> {
  if (!isObject(given)) throw invalidOption(field, given, 'an object')
  return given as Record<string, unknown>
}

function text(field: string, given: unknown): string {
  if (typeof given !== 'string') throw invalidOption(field, given, 'a text')
  return given
}
