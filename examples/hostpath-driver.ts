// A whole CSI driver that keeps its volumes in a directory of this host. As root on Linux it bind-mounts them, and has block volumes by loop
// devices; elsewhere it says so and links to their directories.
//
//   CSI_ENDPOINT=unix:///tmp/csi.sock node --import tsx/esm examples/hostpath-driver.ts --state-dir /tmp/volumes
//
// It runs until SIGTERM or SIGINT; then calls under way are finished and its socket is removed.
import { mkdir, realpath } from 'node:fs/promises'
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { serveCsi } from 'plugstream/csi'
import { chooseAttach } from './hostpath-driver/attach.js'
import type { Driver } from './hostpath-driver/driver.js'
import { controller } from './hostpath-driver/controller.js'
import { groupController } from './hostpath-driver/group-controller.js'
import { identity } from './hostpath-driver/identity.js'
import { node } from './hostpath-driver/node.js'
import { snapshotMetadata } from './hostpath-driver/snapshot-metadata.js'
import { State } from './hostpath-driver/state.js'
import { parseTopology } from './hostpath-driver/topology.js'

const { values } = parseArgs({
  options: {
    endpoint: { type: 'string', default: process.env['CSI_ENDPOINT'] ?? '' },
    'state-dir': { type: 'string', default: 'hostpath-volumes' },
    'node-id': { type: 'string', default: hostname() },
    topology: { type: 'string', multiple: true }, // key=value; default: the node's id
    'max-volumes': { type: 'string', default: '0' }, // that may be published to this node; 0: any number
    name: { type: 'string', default: 'hostpath.plugstream.example' },
    version: { type: 'string', default: '1.0.0' },
    mode: { type: 'string', default: 'monolith' },
  },
})
const { name, version, mode, 'node-id': nodeId } = values
if (!['controller', 'node', 'monolith'].includes(mode))
  throw new Error(`--mode is ${mode}; it must be controller, node or monolith`)
const hasController = mode !== 'node'
const hasNode = mode !== 'controller'
if (!/^\d{1,6}$/.test(values['max-volumes']))
  throw new Error(`--max-volumes is ${values['max-volumes']}; it must be a count`)

await mkdir(values['state-dir'], { recursive: true, mode: 0o700 })
const state = new State(await realpath(values['state-dir'])) // as the kernel names it, too
const driver: Driver = {
  state,
  attach: await chooseAttach(state.directory),
  nodeId,
  maxVolumes: Number(values['max-volumes']),
  topology: parseTopology(values.topology ?? [`topology.${name}/node=${nodeId}`]),
}
// So that a controller in another process knows it, too.
if (hasNode) await state.nodes.save({ id: state.nodes.idOf(nodeId), maxVolumes: driver.maxVolumes })

const server = await serveCsi({
  endpoint: values.endpoint,
  identity: identity({ name, version, hasController }),
  ...(hasController && {
    controller: controller(driver),
    groupController: groupController(driver),
    snapshotMetadata: snapshotMetadata(driver),
  }),
  ...(hasNode && { node: node(driver) }),
})
const { mode: attachMode, reason } = driver.attach
console.log(`${name} ${version} (${mode}) keeps its volumes in ${state.directory}`)
console.log(`they are attached by ${attachMode}${reason && ` (no bind mounts: ${reason})`}`)
console.log(`it listens on ${server.socketPath}`)

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    console.log(`${signal}: finishing`)
    void server.close().then(() => process.exit(0))
  })
}
