import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js'
import { csiProto } from '../../../lib/csi/proto.js'

/** Answers one call; what it throws becomes the status. */
export type Handler = (request: object, call: ServerUnaryCall<object, object>) => unknown

/**
 * A gRPC server with the given CSI calls, over connections that are at hand: counted, and dropped when the test wants it. Services of
 * which no call is given are not served at all.
 */
export async function servePlugin(socketPath: string, handlers: Readonly<Record<string, Handler>>) {
  const grpc = new Server()
  for (const { service } of Object.values(csiServices())) {
    const own = Object.keys(service).filter((rpc) => rpc in handlers)
    if (own.length > 0) grpc.addService(service, Object.fromEntries(own.map((rpc) => [rpc, unary(handlers[rpc]!)])))
  }
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure())
  const raw = await serveRaw(socketPath, (socket) => injector.injectConnection(socket))
  return {
    ...raw,
    async close(): Promise<void> {
      grpc.forceShutdown()
      await raw.close()
    },
  }
}

/** A server that does with a connection what the test says: nothing, or sending something that is no gRPC. */
export async function serveRaw(socketPath: string, onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.resume()
    onConnection(socket)
  })
  server.listen(socketPath)
  await once(server, 'listening')
  const drop = (): void => sockets.forEach((socket) => socket.destroy())
  return {
    /** The connections that are open now. */
    sockets,
    /** How many there were in all. */
    accepted: () => accepted,
    /** Ends every connection without a word, as the death of a process does. */
    drop,
    /** Resolves when the last connection is gone. */
    async quiet(): Promise<void> {
      while (sockets.size > 0) await Promise.all([...sockets].map((socket) => once(socket, 'close')))
    },
    async close(): Promise<void> {
      drop()
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

function csiServices() {
  const { Identity, Controller, GroupController, Node } = csiProto()
  return { Identity, Controller, GroupController, Node }
}

function unary(handle: Handler) {
  return (call: ServerUnaryCall<object, object>, answer: sendUnaryData<object>): void => {
    Promise.resolve()
      .then(() => handle(call.request, call))
      .then(
        (response) => answer(null, response as object),
        (failure: unknown) => answer(failure as Error),
      )
  }
}
