import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { listenOnSocketFile } from '../../lib/csi/socket-file.js'
import type { ToyAnswers } from './toy-kind.js'

/** A toy plugin in this process, which answers what `answers` says at the time. */
export async function toyPlugin(endpoint: string, answers: ToyAnswers) {
  const connections = new Set<Socket>()
  const server = createServer((connection) => {
    connections.add(connection)
    connection.on('error', () => undefined).once('close', () => connections.delete(connection))
    createInterface({ input: connection })
      .on('line', (word) => connection.write(`${JSON.stringify(answers[word as keyof ToyAnswers])}\n`))
      .on('error', () => undefined)
  })
  const file = await listenOnSocketFile(server, endpoint.replace(/^unix:\/\//, ''))
  return {
    async close(): Promise<void> {
      file.remove()
      const closed = new Promise((resolve) => server.close(resolve))
      for (const connection of connections) connection.destroy()
      await closed
    },
  }
}
