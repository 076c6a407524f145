import { status, type ServerWritableStream } from '@grpc/grpc-js'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { GrpcClient } from '../../lib/grpc/client.js'
import { healthProto } from '../../lib/grpc/proto.js'
import type { PluginTask } from '../../lib/task/task.js'
import { serveHealth, type HealthAnswers } from '../lib/grpc/health-server.js'
import { because, inDirectory, isHealthy, kindsOf, reasonsOf, shortTiming, aStory, withHost } from './support.js'

/** No beat is heard in a test: what is known, is known from events. */
const noBeat = { heartbeatMs: 600_000, fingerprintIntervalMs: 600_000 }

const task: PluginTask = {
  allocId: 'a1',
  taskName: 'server',
  isolation: 'none',
  plugin: { kind: 'grpc', id: 'web', service: 'acme.Web', provider: 'acme.example', version: '1.0.0' },
}

/** Answers that tell each change to who watches. */
class Health implements HealthAnswers {
  readonly streams = new Set<ServerWritableStream<{ service: string }, { status: string | number }>>()

  constructor(private now: string) {}

  check = (): { status: string } => ({ status: this.now })

  watch = (stream: ServerWritableStream<{ service: string }, { status: string | number }>): void => {
    this.streams.add(stream)
    stream.once('cancelled', () => this.streams.delete(stream))
    stream.write({ status: this.now })
  }

  turn(now: string): void {
    this.now = now
    for (const stream of this.streams) stream.write({ status: now })
  }
}

describe('a gRPC plugin', () => {
  it('has the whole river: prepared, registered once it serves, watched, called, restored and gone', () =>
    inDirectory(async (stateDir) => {
      const health = new Health('NOT_SERVING')
      let socketPath = ''
      await withHost(stateDir, { timing: noBeat }, async (story) => {
        const { host, tell, registry, fingerprints, nodes } = story
        tell('prestart', task)
        const { env, mounts, ...resources } = await host.prepare(task)
        socketPath = resources.socketPath
        expect(env).to.deep.equal({ GRPC_ENDPOINT: `unix://${socketPath}` })
        expect(mounts.map(({ taskPath, propagation }) => [taskPath, propagation])).to.deep.equal([['/grpc', 'private']])
        const server = story.keep(await serveHealth(socketPath, health))
        tell('started', task)
        expect(registry.all).to.deep.equal([])
        health.turn('SERVING')
        const { plugin } = await story.health.until(isHealthy)
        expect(plugin).to.deep.include({
          type: 'grpc',
          name: 'web',
          provider: 'acme.example',
          version: '1.0.0',
          options: { service: 'acme.Web', taskName: 'server' },
        })
        await fingerprints.until(isHealthy)
        await nodes.until(({ instances }) => instances.some(({ health }) => health.healthy))
        const client = host.client<GrpcClient>('grpc', 'web').makeClient(healthProto().Health)
        const answer = await new Promise((resolve) => client.check({ service: 'acme.Web' }, (_, told) => resolve(told)))
        expect(answer).to.deep.equal({ status: 'SERVING' })
        expect(new Set(server.checked)).to.deep.equal(new Set(['acme.Web']))
      })

      await withHost(stateDir, { timing: noBeat, task$: NEVER }, async ({ host, health: healths, registry, keep }) => {
        const server = keep(await serveHealth(socketPath, health))
        expect(registry.all[0]).to.deep.include({ restored: true })
        const { plugin } = await healths.until(isHealthy)
        expect(plugin).to.include({ provider: 'acme.example', version: '1.0.0' })
        expect(new Set(server.checked)).to.deep.equal(new Set(['acme.Web']))
        health.turn('NOT_SERVING')
        await healths.until(because('not-ready'))
        await server.close()
        await healths.until(because('socket-missing'))
        await host.registry.deregister({ type: 'grpc', name: 'web', allocId: 'a1' })
        expect(await healths.until(({ final }) => final)).to.include({ reason: 'deregistered' })
        expect(kindsOf(registry.all)).to.deep.equal(['registered', 'deregistered'])
      })
    }))

  it(
    'that can be watched tells each change by itself: no beat is awaited',
    aStory({ timing: noBeat }, async ({ host, health, keep, stateDir }) => {
      const answers = new Health('SERVING')
      const socketPath = `${stateDir}/web.sock`
      keep(await serveHealth(socketPath, answers))
      await host.registry.register({ type: 'grpc', name: 'web', allocId: 'a1', connection: { socketPath } })
      await health.until(isHealthy)
      for (const [now, reason] of [
        ['NOT_SERVING', 'not-ready'],
        ['SERVING', 'ready'],
        ['UNKNOWN', 'not-ready'],
        ['SERVING', 'ready'],
      ] as const) {
        health.skip()
        answers.turn(now)
        await health.until(because(reason))
      }
      expect(reasonsOf(health.all)).to.deep.equal(['ready', 'not-ready', 'ready', 'not-ready', 'ready'])
    }),
  )

  it(
    'that cannot be watched is checked on the beat',
    aStory({ timing: shortTiming }, async ({ host, health, keep, stateDir }) => {
      let now = 'SERVING'
      const socketPath = `${stateDir}/web.sock`
      keep(await serveHealth(socketPath, { check: () => ({ status: now }) }))
      await host.registry.register({ type: 'grpc', name: 'web', allocId: 'a1', connection: { socketPath } })
      await health.until(isHealthy)
      now = 'NOT_SERVING'
      await health.until(because('not-ready'))
    }),
  )

  it(
    'whose watch says nothing is found hung by the beat, and one whose watch ends is watched again',
    aStory({ timing: shortTiming }, async ({ host, health, keep, stateDir }) => {
      const answers = new Health('SERVING')
      let isHung = false
      const check = (): ReturnType<Health['check']> | Promise<never> =>
        isHung ? new Promise(() => undefined) : answers.check()
      const socketPath = `${stateDir}/web.sock`
      const watchedTwice = new Promise<void>((resolve) => {
        let watches = 0
        const watch: Health['watch'] = (stream) => {
          answers.watch(stream)
          if (++watches === 1) stream.end()
          else resolve()
        }
        void serveHealth(socketPath, { check, watch }).then(keep)
      })
      await host.registry.register({ type: 'grpc', name: 'web', allocId: 'a1', connection: { socketPath } })
      await watchedTwice
      await health.until(isHealthy)
      expect(reasonsOf(health.all).filter((reason) => reason !== 'socket-missing')).to.deep.equal(['ready'])
      isHung = true
      await health.until(because('probe-timeout'))
    }),
  )

  it(
    'is checked under another name at once where it is registered anew with one, and keeps the version it was registered with',
    aStory({ timing: noBeat }, async ({ host, health, registry, keep, stateDir }) => {
      const socketPath = `${stateDir}/web.sock`
      keep(
        await serveHealth(socketPath, {
          check: (service) => ({ status: service === 'acme.Old' ? 'SERVING' : 'NOT_SERVING' }),
        }),
      )
      const plugin = { type: 'grpc', name: 'web', allocId: 'a1', version: '2.0.0', connection: { socketPath } }
      await host.registry.register({ ...plugin, options: { service: 'acme.Old', zone: 'a' } })
      await health.until(isHealthy)
      health.skip()
      await host.registry.register({ ...plugin, options: { service: 'acme.Old', zone: 'b' } })
      await host.registry.register({ ...plugin, options: { service: 'acme.New' } })
      await health.until(because('not-ready'))
      expect(reasonsOf(health.fresh)).to.deep.equal(['socket-replaced', 'not-ready'])
      expect(registry.all.map(({ plugin: { version } }) => version)).to.deep.equal(['2.0.0', '2.0.0', '2.0.0'])
    }),
  )

  it(
    'has a connection of its own where a plugin of another kind is on the same socket',
    aStory({ timing: noBeat }, async ({ host, health, keep, stateDir }) => {
      const socketPath = `${stateDir}/web.sock`
      keep(await serveHealth(socketPath, { check: () => ({ status: 'SERVING' }) }))
      for (const type of ['csi-node', 'grpc'])
        await host.registry.register({ type, name: 'web', allocId: 'a1', connection: { socketPath } })
      expect((await health.until(isHealthy)).plugin.type).to.equal('grpc')
      expect((await health.until(because('not-csi'))).plugin.type).to.equal('csi-node')
    }),
  )

  const unready: [string, HealthAnswers, string, RegExp][] = [
    ['serves no health', {}, 'not-served', /not grpc.health.v1/],
    [
      'does not know the service it is asked for',
      { check: () => ({ code: status.NOT_FOUND, details: 'unknown service' }) },
      'probe-failed',
      /does not know of the service acme.Web/,
    ],
  ]
  for (const [what, answers, reason, message] of unready) {
    it(
      `that ${what} is not registered: its task hears why, and is to be restarted`,
      aStory({ timing: shortTiming }, async ({ host, tell, keep, notes, restarts, registry }) => {
        const impatient: PluginTask = { ...task, plugin: { ...task.plugin!, healthTimeoutMs: 100 } }
        tell('prestart', impatient)
        const { socketPath } = await host.prepare(impatient)
        keep(await serveHealth(socketPath, answers))
        tell('started', impatient)
        const request = await restarts.until(() => true)
        expect(request).to.include({ reason })
        expect(notes.all[0]).to.include({ kind: 'plugin-unhealthy', reason })
        expect(notes.all[0]?.message).to.match(message)
        expect(registry.all).to.deep.equal([])
      }),
    )
  }
})
