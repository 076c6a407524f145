import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { defaultTiming, type Timing } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import { isObject, takeOptions } from '../options.js'
import type { PluginKind } from '../plugin/kind.js'

/** What a host is opened with, as far as it is plain data. */
export interface HostOptions {
  /** A directory of this host's own, made where it is missing: sockets, volumes and the embedded store. One host at a time has it. */
  stateDir: string
  /** What `NodeSnapshot` calls this node; a plugin's own id for it is in its fingerprint. Default: the host name. */
  nodeId?: string | undefined
  /**
   * A directory in which CSI drivers are announced as to a kubelet, by a registrar beside each (`node-driver-registrar`); made where it is
   * missing. Default: none.
   */
  registrationDirectory?: string | undefined
  /** Kinds of plugins besides CSI and gRPC. Default: none. */
  kinds?: readonly PluginKind[] | undefined
  /** Default of each: `defaultTiming`. */
  timing?: { readonly [Name in keyof Timing]?: Timing[Name] | undefined } | undefined
}

export interface HostSettings {
  /** Absolute. */
  stateDir: string
  nodeId: string
  /** Absolute. */
  registrationDirectory: string | undefined
  kinds: readonly PluginKind[]
  timing: Timing
}

/** The longest time a Node timer can wait. */
const longestMs = 2 ** 31 - 1

/**
 * Checks the options of a host and fills in what is left out. A kind given under a name that `builtIn` has replaces that one.
 *
 * @throws ERR_OPTION_INVALID naming the field; ERR_USAGE on Windows, which has no unix sockets that Node could serve.
 */
export function hostSettings(options: HostOptions, builtIn: (timing: Timing) => readonly PluginKind[]): HostSettings {
  if (process.platform === 'win32')
    throw new PlugstreamError('ERR_USAGE', 'plugstream runs on Linux and macOS, not on Windows')
  if (!isObject(options)) throw invalidOption('init', options, 'an object')
  const { stateDir, nodeId = hostname(), timing = {}, kinds: given = [], registrationDirectory } = options
  if (!isPath(stateDir)) throw invalidOption('stateDir', stateDir, 'the path of a directory')
  if (registrationDirectory !== undefined && !isPath(registrationDirectory))
    throw invalidOption('registrationDirectory', registrationDirectory, 'the path of a directory, or left out')
  if (typeof nodeId !== 'string' || nodeId === '') throw invalidOption('nodeId', nodeId, 'a text that is not empty')
  takeOptions('timing', timing, Object.keys(defaultTiming), { below: 'timing' })
  checkKinds(given)
  for (const [name, value] of Object.entries(timing) as [string, unknown][]) {
    if (value === undefined) continue
    if (typeof value !== 'number' || !(value >= 1) || value > longestMs) {
      throw invalidOption(`timing.${name}`, value, `a number of milliseconds from 1 to ${longestMs}`)
    }
  }
  const allTiming = { ...defaultTiming, ...defined(timing) }
  const kinds = [...new Map([...builtIn(allTiming), ...given].map((kind) => [kind.kind, kind])).values()]
  const types = kinds.flatMap((kind) => kind.types)
  const twice = types.find((type, at) => types.indexOf(type) !== at)
  if (twice !== undefined) throw invalidOption('kinds', twice, 'plugin types of which no two kinds share one')
  return {
    stateDir: resolve(stateDir),
    nodeId,
    registrationDirectory: registrationDirectory === undefined ? undefined : resolve(registrationDirectory),
    kinds,
    timing: allTiming,
  }
}

function isPath(given: unknown): given is string {
  return typeof given === 'string' && given !== '' && !given.includes('\0')
}

function checkKinds(given: unknown): void {
  if (!Array.isArray(given)) throw invalidOption('kinds', given, 'a list of plugin kinds')
  given.forEach((one: unknown, at) => {
    const field = `kinds[${at}]`
    if (!isObject(one)) throw invalidOption(field, one, 'a plugin kind: an object')
    const {
      kind,
      types,
      configure,
      open,
      client,
      channelOptions = [],
    } = one as Partial<Record<keyof PluginKind, unknown>>
    if (!isText(kind)) throw invalidOption(`${field}.kind`, kind, 'a text that is not empty')
    if (!Array.isArray(types) || !types.every(isText)) throw invalidOption(`${field}.types`, types, 'a list of texts')
    if (!Array.isArray(channelOptions) || !channelOptions.every(isText))
      throw invalidOption(`${field}.channelOptions`, channelOptions, 'a list of texts')
    for (const [name, method] of Object.entries({ configure, open, ...(client !== undefined && { client }) }))
      if (typeof method !== 'function') throw invalidOption(`${field}.${name}`, method, 'a function')
  })
}

const isText = (given: unknown): boolean => typeof given === 'string' && given !== ''

function defined(timing: HostOptions['timing'] & {}): Partial<Timing> {
  return Object.fromEntries(Object.entries(timing).filter(([, value]) => (value as unknown) !== undefined))
}
