import * as defaults from '../defaults.js'
import type { ChannelOptions, PluginChannel, PluginKind, PluginTaskConfig } from '../plugin/kind.js'
import type { PluginTask } from '../task/task.js'
import { GrpcChannel } from './channel.js'
import { grpcClient, type GrpcClient } from './client.js'
import { readSettings } from './settings.js'

/** The gRPC kind of plugin, with its own types of channel and client. */
export interface GrpcKind extends PluginKind {
  open(socketPath: string, options?: ChannelOptions): GrpcChannel
  client(pick: () => PluginChannel): GrpcClient
}

/**
 * Any gRPC server that serves `grpc.health.v1` on a unix socket, as a kind of plugin: of type `grpc`, registered once it is SERVING. A host
 * has it without being given it. Its health is watched, so that a change is known at once, and checked on the beat.
 *
 * @example
 * const task = { allocId: 'web-1', taskName: 'server', isolation: 'none', plugin: { kind: 'grpc', id: 'web', service: 'acme.Web' } }
 */
export function grpcKind(): GrpcKind {
  return {
    kind: 'grpc',
    types: ['grpc'],
    configure,
    channelOptions: ['service'],
    open: (socketPath, { service = '' } = {}) => new GrpcChannel(socketPath, service),
    client: grpcClient,
  }
}

function configure({ plugin }: PluginTask): PluginTaskConfig {
  const config = readSettings(plugin)
  const { id, service, provider, version } = config
  return {
    id,
    types: ['grpc'],
    overlaps: true, // each on a socket of its own, and what they share they know how to
    healthTimeoutMs: config.healthTimeoutMs ?? defaults.healthTimeoutMs,
    initTimeoutMs: config.initTimeoutMs ?? defaults.initTimeoutMs,
    socketName: config.socketName ?? 'grpc.sock',
    mountDir: config.mountDir ?? '/grpc',
    endpointVariable: 'GRPC_ENDPOINT',
    ...(service !== undefined && { options: { service } }),
    identity: { ...(provider !== undefined && { provider }), ...(version !== undefined && { version }) },
  }
}
