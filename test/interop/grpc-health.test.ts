import { join } from 'node:path'
import { expect } from 'chai'
import { filter, firstValueFrom } from 'rxjs'
import type { GrpcClient } from '../../lib/grpc/client.js'
import { healthProto } from '../../lib/grpc/proto.js'
import type { SocketSight } from '../../lib/plugin/socket.js'
import { watchSocket } from '../../lib/plugin/socket-watch.js'
import type { TaskSpec } from '../../lib/task/driver.js'
import { socketPathFor } from '../../lib/task/task-paths.js'
import { listen } from '../../streams/operators/listen.js'
import { because, isHealthy, kindsOf, reasonsOf } from '../stories/support.js'
import { aGoStory } from './go-story.js'
import { needsTools, tools } from './tools.js'

/** No beat is heard in a test: what is known, is known from events. */
const noBeat = { timing: { heartbeatMs: 600_000, fingerprintIntervalMs: 600_000 } }

/** A task that runs grpc-go's own health server (`programs/health-server`). SIGTERM ends it at once and leaves its socket behind. */
async function healthServer(flags: readonly string[], plugin: Partial<TaskSpec['plugin']> = {}): Promise<TaskSpec> {
  return {
    allocId: 'a1',
    taskName: 'server',
    isolation: 'none',
    plugin: { kind: 'grpc', id: 'web', ...plugin },
    command: [join(await tools(), 'health-server'), ...flags],
    restart: { mode: 'always', minDelayMs: 1 },
  }
}

/** Resolves when the task's socket is there; by then the program hears signals. */
async function socketOf(stateDir: string, task: TaskSpec): Promise<void> {
  const socketPath = socketPathFor(stateDir, 'grpc', { id: 'web', socketName: 'grpc.sock' }, task)
  const seen$ = listen<SocketSight>((listener) => watchSocket(socketPath, listener))
  await firstValueFrom(seen$.pipe(filter(({ kind }) => kind === 'socket')))
}

describe('a host with a gRPC server in Go as its task', () => {
  before(async function () {
    await needsTools(this)
  })

  it(
    'registers it once it serves, and tells each change of its health by itself: no beat is awaited',
    aGoStory(async ({ host, health, registry, fingerprints, launch, pidOf, problems, stateDir }) => {
      const task = await healthServer(['--service=acme.Web', '--serving=false'], { service: 'acme.Web' })
      launch(task)
      const pid = await pidOf(task)
      await socketOf(stateDir, task)
      process.kill(pid, 'SIGUSR1')
      expect((await health.until(isHealthy)).plugin).to.include({ type: 'grpc', name: 'web', version: '' })
      await fingerprints.until(isHealthy)
      for (const [signal, reason] of [
        ['SIGUSR2', 'not-ready'],
        ['SIGUSR1', 'ready'],
        ['SIGUSR2', 'not-ready'],
        ['SIGUSR1', 'ready'],
      ] as const) {
        health.skip()
        process.kill(pid, signal)
        await health.until(because(reason))
      }
      expect(reasonsOf(health.all)).to.deep.equal(['ready', 'not-ready', 'ready', 'not-ready', 'ready'])
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
      const client = host.client<GrpcClient>('grpc', 'web').makeClient(healthProto().Health)
      const list = await new Promise((resolve) => client.list({}, (failure, told) => resolve(failure ?? told)))
      expect(list).to.deep.equal({ statuses: { '': { status: 'SERVING' }, 'acme.Web': { status: 'SERVING' } } })
      expect(problems.all).to.deep.equal([])
    }, noBeat),
  )

  it(
    'tells at once that it was killed, follows the process that comes after it, and is deregistered when it is stopped',
    aGoStory(async ({ host, health, registry, launch, order, tasks, pidOf }) => {
      const task = await healthServer([])
      launch(task)
      const killed = await pidOf(task)
      await health.until(isHealthy)
      const client = host.client<GrpcClient>('grpc', 'web').makeClient(healthProto().Health)
      tasks.skip()
      health.skip()
      process.kill(killed, 'SIGKILL')
      await health.until(because('task-exited'))
      expect(await pidOf(task)).not.to.equal(killed)
      await health.until(isHealthy)
      const answer = await new Promise((resolve) => client.check({}, (failure, told) => resolve(failure ?? told)))
      expect(answer).to.deep.equal({ status: 'SERVING' })
      order(task, 'stop')
      expect(await health.until(({ final }) => final)).to.include({ reason: 'stopping' })
      await tasks.until(({ kind }) => kind === 'stopped')
      expect(kindsOf(registry.all)).to.deep.equal(['registered', 'deregistered'])
    }, noBeat),
  )

  it(
    'does not register it under a service that it does not know, and says so',
    aGoStory(async ({ health, notes, registry, launch, pidOf }) => {
      const task = await healthServer([], { service: 'acme.Other', healthTimeoutMs: 100 })
      launch({ ...task, restart: { mode: 'never' } })
      const { message } = await notes.until(({ kind }) => kind === 'plugin-unhealthy')
      expect(message).to.contain('it does not know of the service acme.Other')
      expect(registry.all).to.deep.equal([])
      expect(health.all).to.deep.equal([])
      await pidOf(task)
    }),
  )
})
