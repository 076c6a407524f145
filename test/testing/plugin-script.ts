import type { CsiRpc } from '../../lib/csi/rpcs.js'
import type { CsiStatusName } from '../../lib/csi/server-status.js'

/** How one call is answered. With nothing in it: as a plugin that is well answers it. */
export interface Reply {
  /** How long the answer is held back. Default: 0. */
  delayMs?: number | undefined
  /** The response, in the place of the default one. */
  response?: object | undefined
  /** A gRPC status in the place of a response, and its message. */
  status?: CsiStatusName | undefined
  message?: string | undefined
  /** What happens in the place of an answer: none ever comes, all connections are cut off, or the program exits with this code. */
  fault?: 'hang' | 'disconnect' | { exit: number } | undefined
  /** Answers every call from here on, not just one. */
  repeat?: boolean | undefined
}

/**
 * What a scripted plugin says and does; plain JSON. By default it is a monolith that is ready. What is marked (*) is looked at when
 * the plugin begins to listen, the rest at every call.
 */
export interface PluginScript {
  /** Default: `scripted.plugstream.example`, `1.0.0`, `node-1`. */
  name?: string | undefined
  version?: string | undefined
  nodeId?: string | undefined
  /** (*) The services it has besides Identity; the calls of others are UNIMPLEMENTED. Default: controller and node. */
  services?: readonly ('controller' | 'node' | 'groupController')[] | undefined
  /** What Probe says. Default: true. */
  ready?: boolean | 'unset' | undefined
  /** Names as in the CSI enums, or bare numbers that no name need be known for. */
  capabilities?:
    Partial<Record<'plugin' | 'controller' | 'node' | 'groupController', readonly (string | number)[]>> | undefined
  maxVolumes?: number | undefined
  topology?: Readonly<Record<string, string>> | undefined
  /** How the next calls are answered, in order; then as a plugin that is well. */
  replies?: Partial<Record<CsiRpc, readonly Reply[]>> | undefined
  /** (*) When it begins to listen: at once (default), after a time, or when its `listen()` is called. */
  listen?: 'at-once' | 'on-demand' | { afterMs: number } | undefined
  /** (*) Accepts connections, and never says a word. */
  mute?: boolean | undefined
  /** (*) Closes connections that had no call for this long. */
  idleConnectionMs?: number | undefined
  /**
   * Works on what it was asked for also where its caller has given up, as drivers do, and answers ABORTED to every other call about that
   * volume meanwhile. Default: false.
   */
  locksVolumes?: boolean | undefined
  /** (*) What a plugin that is a program of its own ends with after SIGTERM. Default: 0. */
  exitCode?: number | undefined
}

type Answer = (script: PluginScript, request: Record<string, unknown>) => object

/** What a plugin that is well answers; the calls that are not here have an empty response. */
export const answers: Partial<Record<CsiRpc, Answer>> = {
  GetPluginInfo: ({ name = 'scripted.plugstream.example', version = '1.0.0' }) => ({ name, vendor_version: version }),
  Probe: ({ ready = true }) => (ready === 'unset' ? {} : { ready: { value: ready } }),
  GetPluginCapabilities: ({ capabilities, services }) => ({
    capabilities: (capabilities?.plugin ?? (servesController(services) ? ['CONTROLLER_SERVICE'] : [])).map((type) => ({
      service: { type },
    })),
  }),
  ControllerGetCapabilities: ({ capabilities }) =>
    rpcCapabilities(capabilities?.controller ?? ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME']),
  NodeGetCapabilities: ({ capabilities }) =>
    rpcCapabilities(capabilities?.node ?? ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS']),
  GroupControllerGetCapabilities: ({ capabilities }) =>
    rpcCapabilities(capabilities?.groupController ?? ['CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT']),
  NodeGetInfo: ({ nodeId = 'node-1', maxVolumes, topology }) => ({
    node_id: nodeId,
    ...(maxVolumes !== undefined && { max_volumes_per_node: maxVolumes }),
    ...(topology && { accessible_topology: { segments: topology } }),
  }),
  CreateVolume: (_, { name, capacity_range, volume_content_source }) => ({
    volume: {
      volume_id: name,
      capacity_bytes: (capacity_range as { required_bytes: string } | null)?.required_bytes ?? '0',
      content_source: volume_content_source,
    },
  }),
}

function servesController(services: PluginScript['services']): boolean {
  return services?.includes('controller') ?? true
}

function rpcCapabilities(types: readonly (string | number)[]): object {
  return { capabilities: types.map((type) => ({ rpc: { type } })) }
}
