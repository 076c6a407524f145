import type { CsiServices } from 'plugstream/csi'
import type { Driver } from './driver.js'
import { nodeStatus } from './node-status.js'
import { nodeVolumes } from './node-volumes.js'

const capabilities = [
  'STAGE_UNSTAGE_VOLUME',
  'GET_VOLUME_STATS',
  'EXPAND_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
  'VOLUME_MOUNT_GROUP',
  'GET_VOLUME_HEALTH',
  'GET_STORAGE_HEALTH',
] as const

/** The Node half: volumes are attached at the paths they are asked for at, and measured. */
export function node(driver: Driver): NonNullable<CsiServices['node']> {
  return {
    ...nodeVolumes(driver),
    ...nodeStatus(driver),

    NodeGetCapabilities: () => ({ capabilities: capabilities.map((type) => ({ rpc: { type } })) }),

    NodeGetInfo: () => ({
      node_id: driver.nodeId,
      max_volumes_per_node: driver.maxVolumes,
      accessible_topology: { segments: driver.topology },
    }),
  }
}
