import { setImmediate as turn } from 'node:timers/promises'
import { filter, firstValueFrom, NEVER } from 'rxjs'
import { sqliteStore } from '../../../lib/store/sqlite-store.js'
import { openHost } from '../../../streams/host.js'
import { Registry } from '../../../streams/registry.js'
import { BareClient } from '../bare-client.js'
import { inTurn, type Bench } from '../bench.js'
import { PluginProcess } from '../plugin-process.js'
import { fill, plugin } from '../plugins.js'
import { scratch } from '../scratch.js'

/** KiB in use after a collection. */
async function inUse(): Promise<number> {
  if (!globalThis.gc) throw new Error('memory is measured with node --expose-gc, as npm run bench does')
  await turn()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1024
}

const instances: Bench = {
  name: 'f-instance-memory',
  ours: 'memory of a registered instance',
  limit: 'a Map that holds the registrations',
  unit: 'KiB',
  rounds: 5,
  open: async () => {
    const count = 10_000
    const { directory, scope } = scratch()
    let round = 0
    return {
      round: async () => {
        const store = await sqliteStore({ file: `${directory}/${++round}.sqlite` })
        const registry = await Registry.open({ store })
        const before = await inUse()
        await fill(registry, count)
        const ours = (await inUse()) - before
        await registry.close()
        await store.close()

        const bare = await inUse()
        const map = new Map(Array.from({ length: count }, (_, number) => [plugin(number).allocId, plugin(number)]))
        const limit = (await inUse()) - bare
        if (map.size !== count) throw new Error('the map is not full')
        return { ours: ours / count, limit: limit / count }
      },
      close: () => scope.close(),
    }
  },
}

const channels: Bench = {
  name: 'f-channel-memory',
  ours: 'memory of a plugin that is registered, connected, probed and fingerprinted',
  limit: 'a gRPC client that has made its first calls',
  unit: 'KiB',
  rounds: 5,
  open: async () => {
    const count = 200
    const { directory, scope } = scratch()
    const host = await openHost({ stateDir: `${directory}/state`, task$: NEVER })
    scope.add(() => host.close())
    const process = new PluginProcess()
    scope.add(() => process.end())
    const paths = Array.from({ length: count }, (_, number) => `${directory}/${number}.sock`)
    for (const path of paths) await process.listen(path)

    const ours = async (): Promise<number> => {
      const before = await inUse()
      const read = firstValueFrom(
        host.node$.pipe(filter((node) => node.instances.filter((one) => one.fingerprint?.healthy).length === count)),
      )
      const registrations = await Promise.all(paths.map((path, number) => host.registry.register(plugin(number, path))))
      await read
      const after = await inUse()
      const gone = firstValueFrom(host.node$.pipe(filter((node) => node.instances.length === 0)))
      await Promise.all(registrations.map((registration) => registration.deregister()))
      await gone
      return (after - before) / count
    }
    const limit = async (): Promise<number> => {
      const before = await inUse()
      const clients = paths.map((path) => new BareClient(path))
      await Promise.all(clients.map((client) => client.ask()))
      const after = await inUse()
      for (const client of clients) client.close()
      return (after - before) / count
    }
    return { round: inTurn(ours, limit), close: () => scope.close() }
  },
}

export const holding: readonly Bench[] = [instances, channels]
