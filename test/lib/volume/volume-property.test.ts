import fc from 'fast-check'
import { World, type Burst } from './volume-world.js'

const volumes = 20
const allocs = 5

/** A moment in a burst, in turns of the event loop; or never. */
const sometimes = (freq: number, most = 40) => fc.option(fc.integer({ min: 0, max: most }), { freq, nil: undefined })

const wish = fc.record({
  kind: fc.constantFrom('mount' as const, 'mount' as const, 'unmount' as const, 'unmount' as const),
  // Small numbers come more often, so that many meet at one volume.
  volume: fc.oneof(fc.nat(2), fc.nat(volumes - 1)),
  alloc: fc.oneof(fc.nat(1), fc.nat(allocs - 1)),
  namespace: fc.constantFrom(...Array.from({ length: 7 }, () => 'default'), 'other'),
  readonly: fc.constantFrom(...Array.from({ length: 7 }, () => false), true),
  comesAt: fc.nat(30),
  givesUpAfter: fc.option(fc.integer({ min: 1, max: 30 }), { freq: 3, nil: undefined }),
  by: fc.constantFrom('signal' as const, 'time' as const),
})

const rpc = fc.constantFrom(
  'NodeGetInfo',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
)

const burst: fc.Arbitrary<Burst> = fc.record({
  wishes: fc.array(wish, { minLength: 1, maxLength: 12 }),
  faults: fc.array(
    fc.record({ rpc, outcome: fc.constantFrom('final' as const, 'unknown' as const), isDone: fc.boolean() }),
    {
      maxLength: 3,
    },
  ),
  hangs: fc.array(fc.record({ rpc, endsAt: fc.integer({ min: 1, max: 40 }), isDeaf: fc.boolean() }), { maxLength: 2 }),
  saveFails: fc.option(fc.record({ at: fc.integer({ min: 1, max: 12 }), isKept: fc.boolean() }), {
    freq: 3,
    nil: undefined,
  }),
  pluginLeavesAt: sometimes(3),
  dies: fc.option(fc.nat(2), { freq: 2, nil: undefined }),
  losesAt: sometimes(4),
  hostDies: fc.option(
    fc.record({ at: fc.integer({ min: 1, max: 80 }), when: fc.constantFrom('before' as const, 'after' as const) }),
    { freq: 2, nil: undefined },
  ),
  hostClosesAt: sometimes(4),
  end: fc.constantFrom('none' as const, 'killed' as const, 'closed' as const),
  machine: fc.constantFrom('goes on' as const, 'loses a mount' as const, 'starts anew' as const),
  pluginHasRecord: fc.boolean(),
  isAskedToSettle: fc.boolean(),
})

describe('volumes, whatever is asked of them and whatever goes wrong', () => {
  it('are mounted exactly where they are held at every quiet point', async function () {
    this.timeout(120_000)
    await fc.assert(
      fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 8 }), async (bursts) => {
        await using world = new World()
        for (const one of bursts) await world.play(one)
      }),
      { numRuns: 300, seed: 20_261_201 },
    )
  })
})
