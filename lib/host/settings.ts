import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { defaultTiming, type Timing } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import type { PluginKind } from '../plugin/kind.js'

/** What a host is opened with, as far as it is plain data. */
export interface HostOptions {
  /** A directory of this host's own, made where it is missing: sockets, volumes and the embedded store. One host at a time has it. */
  stateDir: string
  /** What `NodeSnapshot` calls this node; a plugin's own id for it is in its fingerprint. Default: the host name. */
  nodeId?: string
  /** Kinds of plugins besides CSI. Default: none. */
  kinds?: readonly PluginKind[]
  /** Default of each: `defaultTiming`. */
  timing?: Partial<Timing>
}

export interface HostSettings {
  /** Absolute. */
  stateDir: string
  nodeId: string
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
  const { stateDir, nodeId = hostname(), timing = {}, kinds: given = [] } = options
  if (typeof stateDir !== 'string' || stateDir === '' || stateDir.includes('\0')) {
    throw invalidOption('stateDir', stateDir, 'the path of a directory')
  }
  if (typeof nodeId !== 'string' || nodeId === '') throw invalidOption('nodeId', nodeId, 'a text that is not empty')
  if (!isObject(timing)) throw invalidOption('timing', timing, 'an object')
  if (!Array.isArray(given) || !given.every(isKind)) throw invalidOption('kinds', given, 'a list of plugin kinds')
  for (const [name, value] of Object.entries(timing) as [string, unknown][]) {
    if (!Object.hasOwn(defaultTiming, name)) {
      throw invalidOption(`timing.${name}`, value, `one of ${Object.keys(defaultTiming).join(', ')}`)
    }
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
  return { stateDir: resolve(stateDir), nodeId, kinds, timing: allTiming }
}

function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

function isKind(given: unknown): given is PluginKind {
  if (!isObject(given)) return false
  const { kind, types, configure, open } = given as Partial<Record<keyof PluginKind, unknown>>
  return (
    typeof kind === 'string' &&
    kind !== '' &&
    Array.isArray(types) &&
    typeof configure === 'function' &&
    typeof open === 'function'
  )
}

function defined(timing: Partial<Timing>): Partial<Timing> {
  return Object.fromEntries(Object.entries(timing).filter(([, value]) => (value as unknown) !== undefined))
}
