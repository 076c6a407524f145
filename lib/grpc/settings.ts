import { invalidOption } from '../errors.js'
import { fieldsOf, isObject, takeOptions } from '../options.js'
import { pluginIdAt, taskPathAt, timeoutAt } from '../plugin-settings.js'

/** The settings of a task whose plugin is a gRPC server. */
export interface GrpcPluginConfig {
  kind: 'grpc'
  /** Plugin name; global, not namespaced. */
  id: string
  /** The service whose health is asked for, as in `acme.Web`. Default: the server as a whole. */
  service?: string | undefined
  /** What is known of the plugin, which cannot say so itself: its own name, and its version. Default: nothing. */
  provider?: string | undefined
  version?: string | undefined
  /** Where the task sees the directory of its socket. Default: `/grpc`. */
  mountDir?: string | undefined
  /** The file name of its socket. Default: `grpc.sock`. */
  socketName?: string | undefined
  /** How long the plugin may have no socket, no answer, or errors, before a restart is asked for. Default: 30 000. */
  healthTimeoutMs?: number | undefined
  /** How long the plugin may answer that it is not serving. Default: 300 000. */
  initTimeoutMs?: number | undefined
}

const fields = fieldsOf<GrpcPluginConfig>({
  kind: true,
  id: true,
  service: true,
  provider: true,
  version: true,
  mountDir: true,
  socketName: true,
  healthTimeoutMs: true,
  initTimeoutMs: true,
})

/**
 * Reads `plugin: { kind: 'grpc', … }`. What is left out stays out.
 *
 * @throws ERR_OPTION_INVALID naming the field, also for one that is not known.
 */
export function readSettings(plugin: unknown): GrpcPluginConfig {
  if (!isObject(plugin)) throw invalidOption('plugin', plugin, 'an object')
  const given = takeOptions<Partial<Record<keyof GrpcPluginConfig, unknown>>>('plugin', plugin, fields, {
    below: 'plugin',
  })
  const read = <T>(
    name: keyof GrpcPluginConfig,
    reader: (field: string, value: unknown) => T,
  ): { [name: string]: T } => (given[name] === undefined ? {} : { [name]: reader(`plugin.${name}`, given[name]) })
  if (given.kind !== 'grpc') throw invalidOption('plugin.kind', given.kind, 'grpc')
  return {
    kind: given.kind,
    id: pluginIdAt('plugin.id', given.id),
    ...read('service', textAt),
    ...read('provider', textAt),
    ...read('version', textAt),
    ...read('mountDir', taskPathAt),
    ...read('socketName', fileNameAt),
    ...read('healthTimeoutMs', timeoutAt),
    ...read('initTimeoutMs', timeoutAt),
  }
}

function textAt(field: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidOption(field, value, 'a text')
  return value
}

function fileNameAt(field: string, value: unknown): string {
  const isName = typeof value === 'string' && !/[/\0]/.test(value) && !['', '.', '..'].includes(value)
  if (!isName) throw invalidOption(field, value, 'the name of a file, without a path')
  return value
}
