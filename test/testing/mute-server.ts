import { createServer, type Socket } from 'node:net'
import { listenOnSocketFile } from '../../lib/csi/socket-file.js'

/** Listens on a socket, accepts every connection, and never says a word. */
export async function serveNothing(socketPath: string) {
  const connections = new Set<Socket>()
  const listener = createServer((connection) => {
    connections.add(connection)
    connection.on('error', () => undefined).once('close', () => connections.delete(connection))
    connection.resume()
  })
  const file = await listenOnSocketFile(listener, socketPath)
  const disconnect = (): void => connections.forEach((connection) => void connection.destroy())
  const close = async (): Promise<void> => {
    file.remove()
    const closed = new Promise((resolve) => listener.close(resolve))
    disconnect()
    await closed
  }
  return { disconnect, close }
}
