// A gRPC server as anybody would write it: a service of its own, and grpc.health.v1 beside it, on the socket that GRPC_ENDPOINT names.
// SIGUSR2 makes it NOT_SERVING, SIGUSR1 SERVING again.
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerWritableStream,
  type ServiceClientConstructor,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { asJson, clockPath, fromJson } from './clock.js'

interface Health {
  status: 'SERVING' | 'NOT_SERVING'
}

const health: Health = { status: 'NOT_SERVING' }
const watchers = new Set<ServerWritableStream<unknown, Health>>()
function turn(status: Health['status']): void {
  health.status = status
  for (const watcher of watchers) watcher.write(health)
}
process.on('SIGUSR1', () => turn('SERVING')).on('SIGUSR2', () => turn('NOT_SERVING'))

// A proto file comes with the package; a server of yours has its own copy, or a package that serves it.
const file = fileURLToPath(new URL('proto/grpc/health/v1/health.proto', import.meta.resolve('plugstream/package.json')))
const { grpc } = loadPackageDefinition(loadSync(file, { enums: String })) as unknown as {
  grpc: { health: { v1: { Health: ServiceClientConstructor } } }
}

const server = new Server()
server.addService(grpc.health.v1.Health.service, {
  Check: (_: unknown, answer: sendUnaryData<Health>) => answer(null, health),
  Watch: (watcher: ServerWritableStream<unknown, Health>) => {
    watchers.add(watcher.once('cancelled', () => watchers.delete(watcher)))
    watcher.write(health)
  },
})
server.addService(
  {
    Now: {
      path: clockPath,
      requestStream: false,
      responseStream: false,
      ...{ requestSerialize: asJson, requestDeserialize: fromJson },
      ...{ responseSerialize: asJson, responseDeserialize: fromJson },
    },
  },
  { Now: (_: unknown, answer: sendUnaryData<string>) => answer(null, new Date().toISOString()) },
)
server.bindAsync(process.env['GRPC_ENDPOINT'] ?? '', ServerCredentials.createInsecure(), (failure) => {
  if (failure) throw failure
})
await pause(200) // it warms up
turn('SERVING')
