import { NEVER } from 'rxjs'
import type { CsiClient } from '../../../lib/csi/client.js'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { openHost } from '../../../streams/host.js'
import type { PluginHost } from '../../../streams/plugin-host.js'
import { bareKeyv } from '../bare-keyv.js'
import { BareNode } from '../bare-node.js'
import { inTurn, rate, timed, type Bench, type Rounds } from '../bench.js'
import { PluginProcess } from '../plugin-process.js'
import { scratch } from '../scratch.js'

/** For block devices the specification promises no mount, so that a plugin that only answers is enough. */
const access = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' } as const
const request = (volumeId: string): MountRequest => ({ plugin: 'bench', volumeId, allocId: 'alloc', access })

type Measure = (host: PluginHost, bare: BareNode) => Rounds['round']

/** A host with a node plugin that is a process and answers each call after a time, and a bare client of the same plugin. */
const withNode = (latencyMs: number, measure: Measure) => async (): Promise<Rounds> => {
  const { directory, scope } = scratch()
  const host = await openHost({ stateDir: `${directory}/state`, task$: NEVER })
  scope.add(() => host.close())
  const plugin = new PluginProcess()
  scope.add(() => plugin.end())
  const socketPath = `${directory}/node.sock`
  await plugin.listen(socketPath, latencyMs)
  await host.registry.register({ type: 'csi-node', name: 'bench', allocId: 'node', connection: { socketPath } })
  await host.waitFor('csi-node', 'bench', { healthy: true })
  const bare = new BareNode(socketPath)
  scope.add(() => bare.close())
  return { round: measure(host, bare), close: () => scope.close() }
}

const one: Bench = {
  name: 'g-mount-unmount',
  ours: 'mounting and unmounting one volume, with its claim on record in SQLite',
  limit: 'the same four calls, bare',
  unit: 'ms',
  rounds: 300,
  aim: { ratioAtMost: 1.5 },
  open: withNode(0, ({ volumes }, bare) =>
    inTurn(
      () => timed(() => volumes.mount(request('one')).then((mounted) => mounted.unmount())),
      () => timed(() => bare.up('one').then(() => bare.down('one'))),
    ),
  ),
}

/** The claim before the first call, that it is let go of before the third, and its end. */
const durable: Bench = {
  name: 'g-mount-unmount-durable',
  ours: one.ours,
  limit: 'the same four calls, bare, and three durable writes by a bare Keyv on SQLite',
  unit: 'ms',
  rounds: 300,
  open: async () => {
    const { directory, scope } = scratch()
    const keyv = await bareKeyv(`${directory}/bare.sqlite`)
    scope.add(() => keyv.disconnect())
    const rounds = await withNode(0, ({ volumes }, bare) =>
      inTurn(
        () => timed(() => volumes.mount(request('one')).then((mounted) => mounted.unmount())),
        () =>
          timed(async () => {
            await keyv.set('one', 'held')
            await bare.up('one')
            await keyv.set('one', 'let go of')
            await bare.down('one')
            await keyv.delete('one')
          }),
      ),
    )()
    scope.add(() => rounds.close())
    return { round: rounds.round, close: () => scope.close() }
  },
}

const count = 200
const ids = Array.from({ length: count }, (_, number) => `volume-${number}`)

const many: Bench = {
  name: 'g-mount-200',
  ours: `mounting ${count} volumes at once with a plugin that takes 5 ms a call`,
  limit: 'the same calls, bare and all at once',
  unit: 'ms',
  rounds: 10,
  open: withNode(5, ({ volumes }, bare) =>
    inTurn(
      async () => {
        const took = await timed(() => Promise.all(ids.map((id) => volumes.mount(request(id)))))
        await Promise.all(ids.map((id) => volumes.unmount(request(id))))
        return took
      },
      async () => {
        const took = await timed(() => Promise.all(ids.map((id) => bare.up(id))))
        await Promise.all(ids.map((id) => bare.down(id)))
        return took
      },
    ),
  ),
}

const calls = 200

const unary: Bench = {
  name: 'g-unary-call',
  ours: 'calls one after the other with the client of the host',
  limit: 'the same with bare grpc-js',
  unit: 'ops/s',
  rounds: 20,
  open: withNode(0, (host, bare) => {
    const client = host.client<CsiClient>('csi-node', 'bench')
    return inTurn(
      () => rate(calls, () => repeat(() => client.nodeGetInfo())),
      () => rate(calls, () => repeat(() => bare.info())),
    )
  }),
}

async function repeat(call: () => Promise<unknown>): Promise<void> {
  for (let made = 0; made < calls; made++) await call()
}

export const mounting: readonly Bench[] = [one, durable, many, unary]
