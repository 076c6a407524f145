import { expect } from 'chai'
import {
  catchError,
  defer,
  filter,
  finalize,
  interval,
  map,
  mergeMap,
  of,
  takeUntil,
  toArray,
  Subject,
  lastValueFrom,
  tap,
} from 'rxjs'
import type { CsiClient } from '../../lib/csi/client.js'
import { messageOf } from '../../lib/errors.js'
import type { PluginHost } from '../../streams/plugin-host.js'
import { Recording } from './recording.js'
import { isHealthy } from './support.js'
import { anUpgrade, controller, phases, pluginSpec, upgradeTiming } from './upgrade-support.js'
import { aDriverStory, created, describeWithMounts, diskDriver } from './volumes-support.js'

/** Two operations every 40 ms are fifty a second; a machine on which this many are under way cannot do them. */
const pairEveryMs = 40
const pairsAtOnce = 30

/** Pairs of operations, one after the other without a pause, from now until it is stopped. */
class Load {
  /** What came of each pair so far: `ok`, or what it failed with. */
  readonly results: Recording<string>
  readonly #stop$ = new Subject<void>()
  #underWay = 0
  readonly #all: Promise<string[]>

  constructor(pair: (nth: number) => Promise<unknown>) {
    const result$ = new Subject<string>()
    this.results = new Recording(result$)
    this.#all = lastValueFrom(
      interval(pairEveryMs).pipe(
        takeUntil(this.#stop$),
        filter(() => this.#underWay < pairsAtOnce),
        mergeMap((nth) =>
          defer(() => (this.#underWay++, pair(nth))).pipe(
            map(() => 'ok'),
            catchError((failure: unknown) => of(messageOf(failure))),
            finalize(() => this.#underWay--),
          ),
        ),
        tap(result$),
        toArray(),
      ),
    )
  }

  /** Waits for this many more pairs. */
  more(count: number): Promise<unknown> {
    const before = this.results.all.length
    return this.results.untilAll((all) => (all.length >= before + count ? true : undefined))
  }

  /** Begins no more, and gives what came of all. */
  stop(): Promise<string[]> {
    this.#stop$.next()
    return this.#all
  }
}

/** Replaces a plugin in the midst of a load: not one operation may fail. */
async function expectNoneFails(load: Load, replace: () => Promise<unknown>): Promise<void> {
  await load.more(10)
  await replace()
  await load.more(10)
  const results = await load.stop()
  expect(results.filter((result) => result !== 'ok')).to.deep.equal([])
  expect(results.length).to.be.at.least(20)
}

describe('an upgrade under fifty operations a second', () => {
  const publish = (client: CsiClient) => async (nth: number) => {
    const volume = { volumeId: `v${nth}`, targetPath: `/target/${nth}` }
    const volumeCapability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
    await client.nodePublishVolume({ ...volume, stagingTargetPath: '/staging', volumeCapability })
    await client.nodeUnpublishVolume(volume)
  }
  const create = (client: CsiClient) => async (nth: number) => {
    const capability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
    const { volume } = await client.createVolume({ name: `v${nth}`, volumeCapabilities: [capability] })
    await client.deleteVolume({ volumeId: volume.volumeId })
  }
  const slow = [{ delayMs: 30, repeat: true }] as const
  const replies = { NodePublishVolume: slow, NodeUnpublishVolume: slow, CreateVolume: slow, DeleteVolume: slow }
  const clientOf = (host: PluginHost, type: string): CsiClient => host.client(type, 'ebs')

  for (const [what, type, overrides, pairs] of [
    ['a node plugin, which is stopped and started', 'csi-node', {}, publish],
    ['a node plugin, of which two may overlap', 'csi-node', { upgrade: 'overlap' }, publish],
    ['a controller plugin', 'csi-controller', controller, create],
  ] as const)
    it(
      `fails none of them: ${what}`,
      anUpgrade(async ({ host, health, replaced, run }) => {
        run(pluginSpec('old', { replies }, overrides))
        await health.until(isHealthy)
        const load = new Load(pairs(clientOf(host, type)))
        await expectNoneFails(load, () => host.replace(pluginSpec('new', { replies, version: '2' }, overrides)))
        expect(phases(replaced.all).at(-1)).to.equal('replaced')
      }),
    )
})

describeWithMounts('an upgrade of a driver under fifty mounts and unmounts a second', () => {
  it(
    'fails none of them, and leaves nothing',
    aDriverStory(
      async (story) => {
        const { host, health, directory, run, volumes } = story
        run(diskDriver(directory))
        await health.until(({ plugin, healthy }) => plugin.type === 'csi-node' && healthy)
        const volumeIds = await Promise.all([...Array(12).keys()].map((nth) => created(story, `data-${nth}`)))
        const load = new Load(async (nth) => {
          const volumeId = volumeIds[nth % volumeIds.length]!
          const mounted = await volumes.mount({ plugin: 'disk', volumeId, allocId: `web-${nth}` })
          await mounted.unmount()
        })
        const upgraded = diskDriver(directory, { allocId: 'disk-2' })
        await expectNoneFails(load, () => host.replace(upgraded))
        expect(host.registry.list('csi-node').map(({ allocId }) => allocId)).to.deep.equal(['disk-2'])
        for (const volumeId of volumeIds) await volumes.delete({ plugin: 'disk', volumeId })
      },
      { timing: upgradeTiming },
    ),
  ).timeout(60_000)
})
