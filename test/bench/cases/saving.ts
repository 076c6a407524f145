import type { Keyv } from 'keyv'
import type { Scope } from '../../../lib/scope.js'
import { sqliteStore } from '../../../lib/store/sqlite-store.js'
import { Registry } from '../../../streams/registry.js'
import { bareKeyv } from '../bare-keyv.js'
import { inTurn, rate, type Aim, type Bench } from '../bench.js'
import { fill, plugin } from '../plugins.js'
import { scratch } from '../scratch.js'

const pairs = 100
const manyMore = 1_000_000
const numbers = Array.from({ length: pairs }, (_, at) => manyMore + at)

/** Pairs of register and deregister, each saved before the next. */
async function oneAtATime(registry: Registry): Promise<void> {
  for (const number of numbers) {
    const registration = await registry.register(plugin(number))
    await registration.deregister()
  }
}

/** The same pairs with all that can wait together waiting together. */
async function allAtOnce(registry: Registry): Promise<void> {
  const registrations = await Promise.all(numbers.map((number) => registry.register(plugin(number))))
  await Promise.all(registrations.map((registration) => registration.deregister()))
}

async function bare(keyv: Keyv): Promise<void> {
  for (const number of numbers) {
    const { allocId, ...rest } = plugin(number)
    await keyv.set(allocId, rest)
    await keyv.delete(allocId)
  }
}

async function filledRegistry(file: string, count: number, scope: Scope): Promise<Registry> {
  const store = await sqliteStore({ file })
  scope.add(() => store.close())
  const registry = await Registry.open({ store })
  scope.add(() => registry.close())
  await fill(registry, count)
  return registry
}

function againstBare(name: string, present: number, work: (registry: Registry) => Promise<void>, aim: Aim): Bench {
  return {
    name: `c-${name}-beside-${present}`,
    ours: `pairs of register and deregister, ${name}, with ${present} instances there`,
    limit: 'pairs of set and delete of a bare Keyv on the same file, one at a time',
    unit: 'ops/s',
    rounds: 50,
    aim,
    open: async () => {
      const { directory, scope } = scratch()
      const file = `${directory}/state.sqlite`
      const registry = await filledRegistry(file, present, scope)
      const keyv = await bareKeyv(file)
      scope.add(() => keyv.disconnect())
      return {
        round: inTurn(
          () => rate(pairs, () => work(registry)),
          () => rate(pairs, () => bare(keyv)),
        ),
        close: () => scope.close(),
      }
    },
  }
}

function flat(name: string, work: (registry: Registry) => Promise<void>): Bench {
  return {
    name: `c-${name}-flat`,
    ours: `pairs of register and deregister, ${name}, with 10000 instances there`,
    limit: 'the same with none there',
    unit: 'ops/s',
    rounds: 50,
    aim: { ratioAtLeast: 0.85 },
    open: async () => {
      const { directory, scope } = scratch()
      const full = await filledRegistry(`${directory}/full.sqlite`, 10_000, scope)
      const empty = await filledRegistry(`${directory}/empty.sqlite`, 0, scope)
      return {
        round: inTurn(
          () => rate(pairs, () => work(full)),
          () => rate(pairs, () => work(empty)),
        ),
        close: () => scope.close(),
      }
    },
  }
}

const present = [0, 1_000, 10_000]

export const saving: readonly Bench[] = [
  ...present.map((count) => againstBare('one-at-a-time', count, oneAtATime, { ratioAtLeast: 0.7 })),
  flat('one-at-a-time', oneAtATime),
  ...present.map((count) => againstBare('hundred-at-a-time', count, allAtOnce, { ratioAtLeast: 5 })),
  flat('hundred-at-a-time', allAtOnce),
]
