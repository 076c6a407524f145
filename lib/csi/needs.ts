import type { _csi_v1_ControllerServiceCapability_RPC_Type as ControllerCapability } from './generated/csi/v1/ControllerServiceCapability.js'
import type { _csi_v1_GroupControllerServiceCapability_RPC_Type as GroupCapability } from './generated/csi/v1/GroupControllerServiceCapability.js'
import type { _csi_v1_NodeServiceCapability_RPC_Type as NodeCapability } from './generated/csi/v1/NodeServiceCapability.js'
import type { _csi_v1_PluginCapability_Service_Type as PluginCapability } from './generated/csi/v1/PluginCapability.js'
import type { VolumeCapability } from './messages/volume-capability.js'

interface Names {
  plugin: keyof typeof PluginCapability
  controller: keyof typeof ControllerCapability
  groupController: keyof typeof GroupCapability
  node: keyof typeof NodeCapability
}

/** Which of a plugin's lists a capability is in. */
export type CapabilityList = keyof Names

/** A capability a call needs: any one of the names is enough. */
export interface Need {
  list: CapabilityList
  anyOf: readonly string[]
}

/** What a call needs, besides what a request gives no cause for. */
export type Needs = readonly (Need | false)[]

export function need<List extends CapabilityList>(list: List, ...anyOf: readonly Names[List][]): Need {
  return { list, anyOf }
}

const countedWriters = {
  controller: need('controller', 'SINGLE_NODE_MULTI_WRITER'),
  node: need('node', 'SINGLE_NODE_MULTI_WRITER'),
}
const mountGroup = need('node', 'VOLUME_MOUNT_GROUP')

/**
 * What the ways to use a volume need of a service, whatever is done with it. The modes that count the writers on one node came later
 * than the others: a plugin without their capability does not know them. The group of a mount is the node's business alone.
 */
export function needsOfUse(list: 'controller' | 'node', ways: readonly (VolumeCapability | undefined)[]): Needs {
  const modes = ways.map((way) => way?.accessMode)
  return [
    (modes.includes('SINGLE_NODE_SINGLE_WRITER') || modes.includes('SINGLE_NODE_MULTI_WRITER')) && countedWriters[list],
    list === 'node' && ways.some((way) => way?.kind === 'mount' && way.volumeMountGroup) && mountGroup,
  ]
}
