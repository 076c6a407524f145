import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { MountRequest, VolumeState } from '../../lib/volume/volume.js'
import { mountsBelow } from '../interop/mounts.js'
import type { VolumeWork } from './programs/volume-host.js'
import { isAt, watchedDriver, type AboutVolume, type Point } from './volumes-driver.js'
import {
  created,
  describeWithMounts,
  expectNothingLeft,
  inMountDirectory,
  phasesOf,
  withVolumes,
  type VolumeStory,
} from './volumes-support.js'

/** One volume, and where the host is with it when it is killed. */
interface Case {
  what: VolumeWork['what']
  rpc: string
  when: Point['when']
  /** Somebody else has it mounted all the time. */
  isShared: boolean
}

const cases: Case[] = [
  ...at('mount', false, 'ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'),
  ...at('unmount', false, 'NodeUnpublishVolume', 'NodeUnstageVolume', 'ControllerUnpublishVolume'),
  ...at('mount', true, 'NodePublishVolume'),
  ...at('unmount', true, 'NodeUnpublishVolume'),
]

function at(what: Case['what'], isShared: boolean, ...rpcs: string[]): Case[] {
  return rpcs.flatMap((rpc) => (['before', 'after'] as const).map((when) => ({ what, rpc, when, isShared })))
}

/** Holds calls at points; those that were held fail once it is let go, so that what they had not done yet is not done. */
class Gate {
  readonly calls: { rpc: string; volumeId: string | undefined }[] = []
  readonly #held = new Map<Point, (failure: Error) => void>()
  #points: Point[] = []
  #allAreHeld: () => void = () => undefined

  readonly at = async (rpc: string, when: Point['when'], request: AboutVolume): Promise<void> => {
    if (when === 'before') this.calls.push({ rpc, volumeId: request.volume_id })
    const point = this.#points.find(isAt(rpc, when, request))
    if (!point) return
    await new Promise((_, reject) => {
      this.#held.set(point, reject)
      if (this.#held.size === this.#points.length) this.#allAreHeld()
    })
  }

  /** Resolves when something is held at each of the points. */
  hold(points: Point[]): Promise<void> {
    this.#points = points
    return new Promise((resolve) => (this.#allAreHeld = resolve))
  }

  letGo(): void {
    this.#points = []
    for (const fail of this.#held.values()) fail(new Error('nobody waits for this any more'))
  }
}

const plugin = 'disk'
const access = { kind: 'mount', accessMode: 'SINGLE_NODE_MULTI_WRITER' } as const
const use = (volumeId: string, allocId: string): MountRequest => ({ plugin, volumeId, allocId, access })

function host(stateDir: string, work: VolumeWork[]): ChildProcess {
  const program = fileURLToPath(new URL('./programs/volume-host.ts', import.meta.url))
  return spawn(process.execPath, ['--import', 'tsx/esm', program, stateDir, JSON.stringify(work)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

async function registerDriver({ host }: VolumeStory, socketPath: string): Promise<void> {
  for (const type of ['csi-controller', 'csi-node'])
    await host.registry.register({ type, name: plugin, allocId: 'd1', connection: { socketPath } })
}

describeWithMounts('a host that is killed while it mounts and unmounts', () => {
  it('has each volume whole or not at all when it is opened again, wherever it was with it', () =>
    inMountDirectory(async (directory) => {
      const [stateDir, socketPath] = [join(directory, 'host'), join(directory, 'csi.sock')]
      const gate = new Gate()
      await using _driver = await watchedDriver({ socketPath, stateDir: join(directory, 'data'), at: gate.at })
      const ids: string[] = []
      await withVolumes(stateDir, { task$: NEVER }, async (story) => {
        await registerDriver(story, socketPath)
        const { volumes } = story
        const begin = async ({ what, isShared }: Case, name: number): Promise<void> => {
          const volumeId = (ids[name] = await created(story, `v${name}`))
          if (isShared) await volumes.mount(use(volumeId, 'other'))
          if (what === 'mount') return
          const { path } = await volumes.mount(use(volumeId, 'killed'))
          writeFileSync(join(path, 'mark'), '')
        }
        await Promise.all(cases.map(begin))
      })

      const idOf = (one: Case): string => ids[cases.indexOf(one)]!
      const all = gate.hold(
        cases.map((one) => ({
          ...one,
          volumeId: idOf(one),
          ...(/^Node(P|Unp)ublish/.test(one.rpc) && { path: '/per-alloc/killed/' }),
        })),
      )
      const child = host(
        stateDir,
        cases.map((one) => ({ what: one.what, request: use(idOf(one), 'killed') })),
      )
      let said = ''
      child.stdout?.on('data', (data: Buffer) => (said += data.toString()))
      const ended = once(child, 'close')
      await all
      child.kill('SIGKILL')
      await ended
      expect(said).to.equal('')
      gate.letGo()
      gate.calls.length = 0

      await withVolumes(stateDir, { task$: NEVER }, async ({ volumes, states, problems }) => {
        const expected = cases.flatMap((one) => {
          const users = [...(one.isShared ? ['other'] : []), ...(one.what === 'mount' ? ['killed'] : [])]
          return users.length > 0 ? [`${idOf(one)}: ${users.map((user) => `${user} mounted`).join(', ')}`] : []
        })
        const seen = (state: readonly VolumeState[]): string[] =>
          state.map((volume) => `${volume.volumeId}: ${phasesOf([volume]).sort().reverse().join(', ')}`)
        await states.until((state) => seen(state).sort().join() === expected.sort().join())

        const claims = volumes.list().flatMap((volume) => volume.claims.map((claim) => ({ ...volume, ...claim })))
        const mounted = mountsBelow(stateDir).map(({ path }) => path)
        expect(mounted.filter((path) => path.includes('/per-alloc/')).sort()).to.deep.equal(
          claims.map(({ path }) => path).sort(),
        )
        const staged = mounted.filter((path) => path.includes('/staging/'))
        expect(staged).to.have.length(volumes.list().length)
        expect(new Set(staged).size).to.equal(staged.length)
        for (const { path } of claims) writeFileSync(join(path, 'new'), '')
        const marked = cases.filter(({ what, isShared }) => what === 'unmount' && isShared).map(idOf)
        for (const { volumeId, path } of claims)
          expect(readdirSync(path)).to.deep.equal(marked.includes(volumeId) ? ['mark', 'new'] : ['new'])
        const held = volumes.list().map(({ volumeId }) => volumeId)
        expect(
          gate.calls.filter(({ rpc, volumeId }) => rpc === 'NodeUnstageVolume' && held.includes(volumeId ?? '')),
        ).to.deep.equal([])
        expect(problems.all).to.deep.equal([])

        await Promise.all(claims.map(({ volumeId, allocId }) => volumes.unmount(use(volumeId, allocId))))
        await Promise.all(ids.map((volumeId) => volumes.delete({ plugin, volumeId })))
      })
      await expectNothingLeft(stateDir)
    }))
})
