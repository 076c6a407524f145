// A CSI node plugin that listens where and when its parent says, and tells the instant at which it did.
import { setTimeout as pause } from 'node:timers/promises'
import { serveCsi, type CsiServer } from '../../../lib/csi/server.js'
import { instant } from '../scratch.js'

export interface Order {
  kind: 'listen' | 'close'
  socketPath: string
  /** How long every call on volumes takes. Default: 0. */
  latencyMs?: number
}

const servers = new Map<string, CsiServer>()

process.on('message', (order: Order) => void obey(order).then(() => process.send?.(instant())))
process.once('disconnect', () => process.exit(0))

async function obey({ kind, socketPath, latencyMs = 0 }: Order): Promise<void> {
  if (kind === 'close') return servers.get(socketPath)?.close()
  const answer = async () => {
    if (latencyMs > 0) await pause(latencyMs)
    return {}
  }
  const server = await serveCsi({
    socketPath,
    identity: {
      GetPluginInfo: () => ({ name: 'bench.plugstream.example', vendor_version: '1.0.0' }),
      GetPluginCapabilities: () => ({ capabilities: [] }),
      Probe: () => ({ ready: { value: true } }),
    },
    node: {
      NodeGetCapabilities: () => ({ capabilities: [{ rpc: { type: 'STAGE_UNSTAGE_VOLUME' } }] }),
      NodeGetInfo: () => ({ node_id: 'node-1' }),
      NodeStageVolume: answer,
      NodePublishVolume: answer,
      NodeUnpublishVolume: answer,
      NodeUnstageVolume: answer,
    },
  })
  servers.set(socketPath, server)
}
