import { invalidOption, PlugstreamError } from '../errors.js'
import type { NodeFacts, PluginFacts } from '../plugin/fingerprint.js'
import type { PluginIdentity } from '../plugin/kind.js'
import type { PluginType } from '../plugin/plugin.js'
import { capabilitiesOf } from './capabilities.js'
import type { CsiCall, CsiResponse } from './rpcs.js'
import { grpcCodeOf } from './status.js'

/**
 * Asks a plugin who it is.
 *
 * @throws ERR_CSI_UNSUPPORTED where it does not know the question, ERR_CSI_PROTOCOL where it has no name, and what {@link CsiCall}
 * throws.
 */
export async function readIdentity(call: CsiCall, signal: AbortSignal): Promise<PluginIdentity> {
  const info = await call('GetPluginInfo', {}, { signal }).catch((error: unknown) => {
    if (grpcCodeOf(error) !== 'UNIMPLEMENTED') throw error
    throw new PlugstreamError('ERR_CSI_UNSUPPORTED', 'the plugin does not speak CSI version 1', { cause: error })
  })
  if (info.name.trim() === '') throw new PlugstreamError('ERR_CSI_PROTOCOL', 'GetPluginInfo: the plugin gave no name')
  return { provider: info.name, version: info.vendor_version }
}

/**
 * Asks a plugin what it can do as the given type. Only calls that this half of a driver has to serve are made: the other half may be
 * another process.
 *
 * @throws ERR_OPTION_INVALID for another type, ERR_CSI_PROTOCOL where a node has no id, and what {@link CsiCall} throws.
 */
export async function readFacts(call: CsiCall, type: PluginType, signal: AbortSignal): Promise<PluginFacts> {
  if (type !== 'csi-controller' && type !== 'csi-node') throw invalidOption('type', type, 'csi-controller or csi-node')
  // One that fails ends the others: nobody will hear their answer.
  const stop = new AbortController()
  const options = { signal: AbortSignal.any([signal, stop.signal]) }
  try {
    const plugin = call('GetPluginCapabilities', {}, options)
    if (type === 'csi-controller') {
      const [general, controller] = await Promise.all([plugin, call('ControllerGetCapabilities', {}, options)])
      return {
        ...generalFacts(general),
        controller: capabilitiesOf(controller.capabilities.map(({ rpc }) => rpc?.type)),
      }
    }
    const capabilities = call('NodeGetCapabilities', {}, options)
    const [general, node, info] = await Promise.all([plugin, capabilities, call('NodeGetInfo', {}, options)])
    return { ...generalFacts(general), node: nodeFacts(node, info) }
  } finally {
    stop.abort()
  }
}

function generalFacts({ capabilities }: CsiResponse<'GetPluginCapabilities'>): PluginFacts {
  const { names } = capabilitiesOf(capabilities.map(({ service }) => service?.type))
  return {
    requiresControllerPlugin: names.includes('CONTROLLER_SERVICE'),
    requiresTopologies: names.includes('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
  }
}

function nodeFacts({ capabilities }: CsiResponse<'NodeGetCapabilities'>, info: CsiResponse<'NodeGetInfo'>): NodeFacts {
  if (info.node_id === '') throw new PlugstreamError('ERR_CSI_PROTOCOL', 'NodeGetInfo: the plugin gave no node id')
  const maxVolumes = limitOf(info.max_volumes_per_node)
  const topology = topologyOf(info.accessible_topology?.segments)
  return {
    ...capabilitiesOf(capabilities.map(({ rpc }) => rpc?.type)),
    id: info.node_id,
    ...(maxVolumes !== undefined && { maxVolumes }),
    ...(topology && { topology }),
  }
}

/** 0 means no limit is known; negative ones were seen, and so was the largest int64. */
function limitOf(int64: string): number | undefined {
  const limit = Number(int64)
  return limit > 0 && Number.isSafeInteger(limit) ? limit : undefined
}

/** Keys in order: servers in Go shuffle a map each time they send it, and nothing has changed then. Empty values are values. */
function topologyOf(segments: Readonly<Record<string, string>> | undefined): Record<string, string> | undefined {
  const entries = Object.entries(segments ?? {})
  if (entries.length === 0) return undefined
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
