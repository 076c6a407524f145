// A small CSI driver that keeps its volumes in a directory. As root on Linux it bind-mounts them; elsewhere it says so and links to them.
//
//   CSI_ENDPOINT=unix:///tmp/csi.sock node --import tsx/esm examples/hostpath-driver.ts --data-dir /tmp/volumes
//
// It runs until SIGTERM or SIGINT; then calls under way are finished and its socket is removed.
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { serveCsi } from 'plugstream/csi'
import { chooseAttach } from './hostpath-driver/attach.js'
import { controller } from './hostpath-driver/controller.js'
import { node } from './hostpath-driver/node.js'
import { Volumes } from './hostpath-driver/volumes.js'

const { values } = parseArgs({
  options: {
    endpoint: { type: 'string', default: process.env['CSI_ENDPOINT'] ?? '' },
    'data-dir': { type: 'string', default: 'hostpath-volumes' },
    'node-id': { type: 'string', default: hostname() },
    name: { type: 'string', default: 'hostpath.plugstream.example' },
    version: { type: 'string', default: '1.0.0' },
    mode: { type: 'string', default: 'monolith' },
  },
})
const { name, version, mode } = values
if (!['controller', 'node', 'monolith'].includes(mode))
  throw new Error(`--mode is ${mode}; it must be controller, node or monolith`)
const hasController = mode !== 'node'
const hasNode = mode !== 'controller'

const dataDir = resolve(values['data-dir'])
await mkdir(dataDir, { recursive: true, mode: 0o700 })
const volumes = new Volumes(dataDir)
const attach = await chooseAttach(dataDir)
console.log(
  `volumes are in ${dataDir}, attached by ${attach.mode}${attach.reason && ` (no bind mounts: ${attach.reason})`}`,
)
const topology = { [`topology.${name}/node`]: values['node-id'] }

const server = await serveCsi({
  endpoint: values.endpoint,
  identity: {
    GetPluginInfo: () => ({ name, vendor_version: version }),
    GetPluginCapabilities: () => ({
      capabilities: [
        ...(hasController ? [{ service: { type: 'CONTROLLER_SERVICE' as const } }] : []),
        { service: { type: 'VOLUME_ACCESSIBILITY_CONSTRAINTS' as const } },
      ],
    }),
    Probe: () => ({ ready: { value: true } }),
  },
  ...(hasController && { controller: controller(volumes, dataDir, topology) }),
  ...(hasNode && { node: node(volumes, attach, values['node-id'], topology) }),
})
console.log(`${name} ${version} (${mode}) listens on ${server.socketPath}; volumes are in ${dataDir}`)
console.log(
  `volumes are attached with ${attach.mode}${attach.reason && `, as there are no bind mounts: ${attach.reason}`}`,
)

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    console.log(`${signal}: finishing`)
    void server.close().then(() => process.exit(0))
  })
}
