import { KeyvSqlite } from '@keyv/sqlite'
import { sqliteStore } from '../../../lib/store/sqlite-store.js'
import { Registry } from '../../../streams/registry.js'
import { inTurn, timed, type Bench } from '../bench.js'
import { fill } from '../plugins.js'
import { scratch } from '../scratch.js'

const count = 10_000

export const restoring: Bench = {
  name: 'e-restore-10000',
  ours: `opening a registry with ${count} instances`,
  limit: 'opening the file, reading the rows and parsing them',
  unit: 'ms',
  rounds: 20,
  aim: { ratioAtMost: 2 },
  open: async () => {
    const { directory, scope } = scratch()
    const file = `${directory}/state.sqlite`
    const openRegistry = async (): Promise<{ registry: Registry; close: () => Promise<void> }> => {
      const store = await sqliteStore({ file })
      const registry = await Registry.open({ store })
      return { registry, close: () => registry.close().then(() => store.close()) }
    }
    const first = await openRegistry()
    await fill(first.registry, count)
    await first.close()

    const ours = async (): Promise<number> => {
      let opened: Awaited<ReturnType<typeof openRegistry>> | undefined
      const took = await timed(async () => (opened = await openRegistry()))
      if (opened?.registry.list().length !== 100) throw new Error('not all plugins were restored')
      await opened.close()
      return took
    }
    const limit = async (): Promise<number> => {
      let rows: { key: string; value: string }[] = []
      const store = new KeyvSqlite({ uri: `sqlite://${file}` })
      const took = await timed(async () => {
        rows = (await store.query('SELECT key, value FROM keyv')) as typeof rows
        for (const { value } of rows) JSON.parse(value)
      })
      if (rows.length < count) throw new Error('not all rows were read')
      await store.disconnect()
      return took
    }
    return { round: inTurn(ours, limit), close: () => scope.close() }
  },
}
