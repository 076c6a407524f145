import { refOf, type RegistryChange } from '../../../lib/plugin/plugin.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import { Registry } from '../../../streams/registry.js'
import { inTurn, rate, type Bench } from '../bench.js'
import { plugin } from '../plugins.js'
import { scratch } from '../scratch.js'

const pairs = 500
const changes = Array.from({ length: pairs }, (_, number) => plugin(number)).flatMap((one): RegistryChange[] => [
  { kind: 'register', plugin: one },
  { kind: 'deregister', ref: refOf(one) },
])

const telling = (listeners: number): Bench => ({
  name: `d-events-to-${listeners}`,
  ours: `events a second to ${listeners} subscribers, through a registry that keeps its records in memory`,
  limit: 'a loop that calls as many functions',
  unit: 'ops/s',
  rounds: 30,
  open: async () => {
    const { scope } = scratch()
    const registry = await Registry.open({ store: memoryStore() })
    scope.add(() => registry.close())
    let heard = 0
    const hear = Array.from({ length: listeners }, () => (_: unknown) => void heard++)
    for (const one of hear) registry.event$.subscribe(one)
    let last: () => void = () => undefined
    registry.event$.subscribe(({ kind, plugin: { allocId } }) => {
      if (kind === 'deregistered' && allocId === plugin(pairs - 1).allocId) last()
    })

    const ours = async (): Promise<void> => {
      const told = new Promise<void>((resolve) => (last = resolve))
      for (const change of changes) registry.next(change)
      await told
    }
    const limit = (): void => {
      for (const change of changes) for (const one of hear) one(change)
    }
    return {
      round: async (limitFirst) => {
        const sample = await inTurn(
          () => rate(2 * pairs, ours),
          () => rate(2 * pairs, limit),
        )(limitFirst)
        if (heard !== 4 * pairs * listeners) throw new Error(`${heard} were heard of ${4 * pairs * listeners}`)
        heard = 0
        return sample
      },
      close: () => scope.close(),
    }
  },
})

export const tellings: readonly Bench[] = [1, 100, 1_000].map(telling)
