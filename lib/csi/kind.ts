import * as defaults from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import { takeOptions } from '../options.js'
import type { PluginChannel, PluginGone, PluginHeld, PluginKind, PluginTaskConfig } from '../plugin/kind.js'
import type { CsiPluginConfig, PluginTask } from '../task/task.js'
import { CsiChannel } from './channel.js'
import { csiClient, type CsiClient, type CsiTarget } from './client.js'
import { parseCsiPlugin } from './csi-plugin.js'

/** The CSI kind of plugin, with its own types of channel and client. */
export interface CsiKind extends PluginKind {
  open(socketPath: string): CsiChannel
  client(pick: () => PluginChannel, gone?: PluginGone, closing?: AbortSignal, held?: PluginHeld): CsiClient
}

/** A monolith serves both roles on one socket, and is registered as two plugins of one name. */
const typesOf = {
  controller: ['csi-controller'],
  node: ['csi-node'],
  monolith: ['csi-controller', 'csi-node'],
} as const satisfies Record<CsiPluginConfig['type'], readonly string[]>

/**
 * CSI storage drivers as a kind of plugin.
 *
 * @param init.rpcTimeoutMs deadline of calls that bring none of their own. Default: `Timing.rpcTimeoutMs`.
 * @example
 * const channel = csiKind().open('/run/driver/csi.sock')
 * await channel.probe(AbortSignal.timeout(3_000)) // { kind: 'ready' }
 */
export function csiKind(init: { rpcTimeoutMs?: number | undefined } = {}): CsiKind {
  const { rpcTimeoutMs = defaults.defaultTiming.rpcTimeoutMs } = takeOptions('init', init, ['rpcTimeoutMs'])
  return {
    kind: 'csi',
    types: typesOf.monolith,
    configure,
    open: (socketPath) => new CsiChannel(socketPath, rpcTimeoutMs),
    client: (pick, gone, closing, held) =>
      csiClient({
        pick: () => ofCsi(pick()),
        gone: gone && ((target, signal) => gone(target as CsiTarget & PluginChannel, signal)),
        closing,
        held,
        rpcTimeoutMs,
      }),
  }
}

function configure(task: PluginTask): PluginTaskConfig {
  const config = configOf(task)
  return {
    id: config.id,
    types: typesOf[config.type],
    // A node plugin has the mounts of its machine, and often processes behind them: two would undo each other's.
    overlaps: config.type === 'controller',
    healthTimeoutMs: config.healthTimeoutMs ?? defaults.healthTimeoutMs,
    initTimeoutMs: config.initTimeoutMs ?? defaults.initTimeoutMs,
    socketName: 'csi.sock',
    mountDir: config.mountDir ?? defaults.mountDir,
    volumeDir: config.stagePublishBaseDir ?? defaults.stagePublishBaseDir,
    endpointVariable: 'CSI_ENDPOINT',
  }
}

function configOf({ csiPlugin, plugin }: PluginTask): CsiPluginConfig {
  if (!plugin) return parseCsiPlugin(csiPlugin)
  if (csiPlugin) throw invalidOption('plugin', plugin, 'left out where csiPlugin is given')
  const { kind, ...block } = plugin
  if (kind !== 'csi') throw invalidOption('plugin.kind', kind, 'csi')
  return parseCsiPlugin(block, 'plugin')
}

function ofCsi(channel: PluginChannel): CsiChannel {
  if (channel instanceof CsiChannel) return channel
  throw new PlugstreamError('ERR_USAGE', 'a CSI client was given the channel of another kind of plugin')
}
