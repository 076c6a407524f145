// A CSI node plugin that listens where and when its parent says, and tells the instant at which it did.
import { serveCsi, type CsiServer } from '../../../lib/csi/server.js'
import { instant } from '../scratch.js'

export interface Order {
  kind: 'listen' | 'close'
  socketPath: string
}

const servers = new Map<string, CsiServer>()

process.on('message', (order: Order) => void obey(order).then(() => process.send?.(instant())))
process.once('disconnect', () => process.exit(0))

async function obey({ kind, socketPath }: Order): Promise<void> {
  if (kind === 'close') return servers.get(socketPath)?.close()
  const server = await serveCsi({
    socketPath,
    identity: {
      GetPluginInfo: () => ({ name: 'bench.plugstream.example', vendor_version: '1.0.0' }),
      GetPluginCapabilities: () => ({ capabilities: [] }),
      Probe: () => ({ ready: { value: true } }),
    },
    node: {
      NodeGetCapabilities: () => ({ capabilities: [] }),
      NodeGetInfo: () => ({ node_id: 'node-1' }),
    },
  })
  servers.set(socketPath, server)
}
