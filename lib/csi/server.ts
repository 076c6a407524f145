import { createServer, type Socket } from 'node:net'
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js'
import { defaultTiming } from '../defaults.js'
import { invalidOption } from '../errors.js'
import { fieldsOf, isObject, takeOptions } from '../options.js'
import { csiProto } from './proto.js'
import { implementationOf, type CsiServices } from './server-handlers.js'
import { listenOnSocketFile } from './socket-file.js'

/** Where a server listens, what it serves, and two bounds. */
export type CsiServerInit = CsiServices &
  (
    | { /** Absolute path of the socket. */ socketPath: string; endpoint?: undefined }
    | {
        /** As in the variable CSI_ENDPOINT: `unix:///path`, `unix:/path` or `/path`. */ endpoint: string
        socketPath?: undefined
      }
  ) & {
    /** Connections without a call for this long are closed. Default: never. */
    idleConnectionMs?: number | undefined
    /** How long `close()` lets calls run on before it cuts them off. Default: 5 000. */
    closeTimeoutMs?: number | undefined
  }

const places = ['socketPath', 'endpoint']
const services = fieldsOf<CsiServices>({
  identity: true,
  controller: true,
  node: true,
  groupController: true,
  snapshotMetadata: true,
})

/** A CSI server that is listening. */
export interface CsiServer extends AsyncDisposable {
  readonly socketPath: string
  /** Cuts every connection off, as a fault of the network would, and goes on serving new ones. */
  disconnect(): void
  /**
   * Removes its own socket, takes no new calls, lets those in flight finish within `closeTimeoutMs` and aborts the rest. Resolves when
   * the last connection is gone. Idempotent.
   */
  close(): Promise<void>
}

/**
 * Serves CSI services on a unix socket, and resolves once it listens. The socket is its user's alone (mode 0600); its directory has to be
 * there; a dead socket on the path is taken away.
 *
 * @throws ERR_OPTION_INVALID, ERR_SOCKET_PATH, ERR_SOCKET (a live server or another file is on the path, or it cannot be bound).
 * @example
 * await using server = await serveCsi({
 *   endpoint: 'unix:///run/driver/csi.sock',
 *   identity: {
 *     GetPluginInfo: () => ({ name: 'driver.example.com', vendor_version: '1.0.0' }),
 *     GetPluginCapabilities: () => ({ capabilities: [] }),
 *     Probe: () => ({ ready: { value: true } }),
 *   },
 *   node: { NodeGetInfo: async (request, { signal }) => ({ node_id: await findNodeId(signal) }) },
 * })
 */
export async function serveCsi(init: CsiServerInit): Promise<CsiServer> {
  takeOptions('init', init, [...places, ...services, 'idleConnectionMs', 'closeTimeoutMs'])
  const endpoint: unknown = init.endpoint
  if (init.socketPath !== undefined && endpoint !== undefined)
    throw invalidOption('endpoint', endpoint, 'left out where socketPath is given')
  const socketPath = init.socketPath ?? socketPathOf(init.endpoint)
  const { closeTimeoutMs = defaultTiming.closeTimeoutMs } = init
  const rpcServer = rpcServerOf(init)
  const injector = rpcServer.createConnectionInjector(ServerCredentials.createInsecure())
  const connections = new Set<Socket>()
  const disconnect = (): void => connections.forEach((connection) => void connection.destroy())

  const listener = createServer((connection) => {
    connections.add(connection)
    connection.once('close', () => connections.delete(connection))
    connection.on('error', () => undefined) // the calls on it hear of it
    injector.injectConnection(connection)
  })
  const file = await listenOnSocketFile(listener, socketPath)
  listener.on('error', () => undefined) // one connection could not be accepted (no descriptor left); the others go on

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => listener.close(resolve))
    rpcServer.tryShutdown(() => undefined)
    // HTTP/2 would wait for ever for the first word of a connection that never spoke.
    for (const connection of connections) if (connection.bytesRead === 0) connection.destroy()
    const timer = setTimeout(disconnect, closeTimeoutMs)
    try {
      file.remove()
    } finally {
      await closed
      clearTimeout(timer)
    }
  }
  const closeOnce = (): Promise<void> => (closing ??= close())
  return { socketPath, disconnect, close: closeOnce, [Symbol.asyncDispose]: closeOnce }
}

/**
 * The path in an endpoint as CSI plugins are given it.
 *
 * @throws ERR_OPTION_INVALID for anything but `unix:///path`, `unix:/path` and `/path`.
 */
export function socketPathOf(endpoint: string): string {
  const path = /^(?:unix:(?:\/\/)?)?(\/[^/].*)$/s.exec(endpoint)?.[1]
  if (path === undefined) throw invalidOption('endpoint', endpoint, 'unix:///<path>, unix:/<path> or an absolute path')
  return path
}

function rpcServerOf(init: CsiServerInit): Server {
  const { Identity, Controller, Node, GroupController, SnapshotMetadata } = csiProto()
  const { identity } = init
  for (const name of services as (keyof CsiServices)[]) {
    const handlers: unknown = init[name]
    const isLeftOut = handlers === undefined && name !== 'identity'
    if (!isLeftOut && !isObject(handlers)) throw invalidOption(name, handlers, 'an object of functions')
  }
  for (const rpc of Object.keys(Identity.service) as (keyof CsiServices['identity'])[]) {
    if (typeof identity[rpc] !== 'function') throw invalidOption(`identity.${rpc}`, identity[rpc], 'a function')
  }
  const server = new Server({
    'grpc.enable_channelz': 0,
    ...(init.idleConnectionMs !== undefined && { 'grpc.max_connection_idle_ms': init.idleConnectionMs }),
  })
  const served: [ServiceDefinition, object | undefined][] = [
    [Identity.service, identity],
    [Controller.service, init.controller],
    [Node.service, init.node],
    [GroupController.service, init.groupController],
    [SnapshotMetadata.service, init.snapshotMetadata],
  ]
  for (const [service, handlers] of served) {
    if (handlers) server.addService(service, implementationOf(service, handlers))
  }
  return server
}
