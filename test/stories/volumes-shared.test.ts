import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { mountsBelow } from '../interop/mounts.js'
import { isHealthy, ofAlloc } from './support.js'
import {
  aWatchedStory,
  created,
  describeWithMounts,
  expectNothingLeft,
  failureOf,
  inMountDirectory,
  phasesOf,
  withWatched,
  type WatchedStory,
} from './volumes-support.js'

const node = ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'] as const

async function withVolume(story: WatchedStory) {
  const driver = await story.drive('d1')
  const of = { plugin: 'disk', volumeId: await created(story) }
  return { driver, gate: driver.gate, of, a: { ...of, allocId: 'a' }, b: { ...of, allocId: 'b' } }
}

const usual = ['kind', 'accessMode']

describeWithMounts('a volume that more than one uses', () => {
  it(
    'stays staged for B when A unmounts it with an instance of its plugin that came after both',
    aWatchedStory(async (story) => {
      const { volumes, host, health } = story
      const { driver, a, b } = await withVolume(story)
      await volumes.mount(a)
      const { path } = await volumes.mount(b)
      writeFileSync(join(path, 'hello'), 'world')
      const { gate } = await story.drive('d2')
      await health.until((event) => ofAlloc('d2')(event) && isHealthy(event) && event.plugin.type === 'csi-node')
      for (const type of ['csi-controller', 'csi-node'])
        await host.registry.deregister({ type, name: 'disk', allocId: 'd1' })
      await driver.end()

      await volumes.unmount(a)
      expect(gate.count(...node)).to.deep.equal([0, 0, 1, 0])
      expect(driver.gate.count(...node)).to.deep.equal([1, 2, 0, 0])
      expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
      await volumes.unmount(b)
      expect(gate.count(...node)).to.deep.equal([0, 0, 2, 1])
    }),
  )

  it('stays staged for B when A unmounts it after the host was opened again', () =>
    inMountDirectory(async (directory) => {
      let of = { plugin: 'disk', volumeId: '' }
      const [a, b] = ['a', 'b'].map((allocId) => (): typeof of & { allocId: string } => ({ ...of, allocId }))
      await withWatched(directory, {}, async (story) => {
        of = (await withVolume(story)).of
        await story.volumes.mount(a!())
        const { path } = await story.volumes.mount(b!())
        writeFileSync(join(path, 'hello'), 'world')
      })
      await withWatched(directory, {}, async (story) => {
        const { volumes, events } = story
        const unmounted = volumes.unmount(a!())
        const { gate } = await story.drive('d1', false)
        await unmounted
        const kept = await events.until(({ kind }) => kind === 'kept')
        expect(kept).to.include({ allocId: 'b' })
        expect(gate.count('NodeUnpublishVolume', 'NodeUnstageVolume')).to.deep.equal([1, 0])
        const [path = ''] = volumes.list().flatMap(({ claims }) => claims.map(({ path }) => path))
        expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
        await volumes.unmount(b!())
        expect(gate.count('NodeUnpublishVolume', 'NodeUnstageVolume')).to.deep.equal([2, 1])
      })
      await expectNothingLeft(join(directory, 'host'))
    }))

  it(
    'has the same mount options for both where they are equal by value',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, a, b } = await withVolume(story)
      const accessMode = 'SINGLE_NODE_WRITER'
      await volumes.mount({ ...a, access: { kind: 'mount', accessMode, mountFlags: ['noatime'] } })
      const { path } = await volumes.mount({ ...b, access: { mountFlags: ['noatime'], accessMode, kind: 'mount' } })
      await volumes.unmount({ ...a, access: { accessMode, mountFlags: ['noatime'], kind: 'mount' } })
      expect(gate.count(...node)).to.deep.equal([1, 2, 1, 0])
      expect(existsSync(path)).to.equal(true)
      const other = failureOf(volumes.mount({ ...a, access: { kind: 'mount', accessMode, mountFlags: ['nodev'] } }))
      expect(await other).to.include({ code: 'ERR_VOLUME_BUSY' })
      await volumes.unmount({ ...b, access: { kind: 'mount', accessMode, mountFlags: ['noatime'] } })
      expect(gate.count(...node)).to.deep.equal([1, 2, 2, 1])
    }),
  )

  it(
    'is unmounted as it is listed or was mounted, where its mount options are not shown, and from nowhere else',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, a, b } = await withVolume(story)
      const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', mountFlags: ['noatime'] } as const
      const mounted = await volumes.mount({ ...a, access })
      const other = await volumes.mount({ ...b, access })
      const { claims, ...volume } = volumes.list()[0]!
      expect(claims.map((claim) => Object.keys(claim.access))).to.deep.equal([usual, usual])
      await volumes.unmount({ ...volume, ...claims[0]!, allocId: 'b' })
      expect(gate.count(...node)).to.deep.equal([1, 2, 0, 0])
      await volumes.unmount({ ...volume, ...claims[0]! })
      await volumes.unmount({ ...volume, ...claims[0]! })
      expect([mounted, other].map(({ path }) => existsSync(path))).to.deep.equal([false, true])
      await volumes.unmount(other)
      expect(gate.count(...node)).to.deep.equal([1, 2, 2, 1])
    }),
  )

  it(
    'leaves no directory of who could not have it, nor of who gave it up',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, of, a, b } = await withVolume(story)
      const held = gate.hold({ rpc: 'NodePublishVolume', when: 'before', volumeId: of.volumeId })
      const failed = failureOf(volumes.mount(a))
      await held
      gate.letGo({ failing: true })
      expect((await failed).code).to.equal('ERR_CSI_RPC')
      const heldAgain = gate.hold({ rpc: 'NodePublishVolume', when: 'before', volumeId: of.volumeId })
      const caller = new AbortController()
      const givenUp = failureOf(volumes.mount(b, { signal: caller.signal }))
      await heldAgain
      caller.abort()
      expect((await givenUp).code).to.equal('ERR_ABORTED')
      gate.letGo({ failing: true })
      await volumes.unmount(b) // its turn comes after all that
    }),
  )

  it(
    'is not changed by what is done to what is listed of it',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { a } = await withVolume(story)
      await using _mounted = await volumes.mount(a)
      const before = structuredClone(volumes.list())
      for (const { claims } of volumes.list())
        for (const claim of claims)
          Object.assign(claim.access, { accessMode: 'MULTI_NODE_MULTI_WRITER', readonly: true })
      expect(volumes.list()).to.deep.equal(before)
    }),
  )

  it(
    'rejects what waits for its turn and is aborted, and never does it',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, a, b, of } = await withVolume(story)
      const held = gate.hold({ rpc: 'NodeStageVolume', when: 'before', volumeId: of.volumeId })
      const mounted = volumes.mount(a)
      await held
      const caller = new AbortController()
      const { signal } = caller
      const waiting = [volumes.mount(b, { signal }), volumes.unmount(a, { signal }), volumes.stats(of, { signal })]
      const failures = Promise.all(waiting.map(failureOf))
      caller.abort()
      for (const failure of await failures) {
        expect(failure.code).to.equal('ERR_ABORTED')
        expect(failure.message).to.include('waiting for its turn')
      }
      gate.letGo()
      await using _mounted = await mounted
      expect(phasesOf(volumes.list())).to.deep.equal(['a mounted'])
      expect(gate.count(...node, 'NodeGetVolumeStats')).to.deep.equal([1, 1, 0, 0, 0])
    }),
  )

  it(
    'is staged once and published five times for five that come at the same moment, with one call at a time',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, of } = await withVolume(story)
      const users = ['a', 'b', 'c', 'd', 'e'].map((allocId) => ({ ...of, allocId }))
      await Promise.all(users.map((user) => volumes.mount(user)))
      expect(gate.count(...node)).to.deep.equal([1, 5, 0, 0])
      await Promise.all(users.map((user) => volumes.unmount(user)))
      expect(gate.count(...node)).to.deep.equal([1, 5, 5, 1])
      expect(gate.mostAtOnce).to.equal(1)
    }),
  )

  it(
    'is staged apart for two namespaces that have the same id in their books',
    aWatchedStory(async (story) => {
      const { volumes, directory } = story
      const { gate, a, of } = await withVolume(story)
      const mine = await volumes.mount({ ...a, namespace: 'mine' })
      const yours = await volumes.mount({ ...a, namespace: 'yours' })
      expect(new Set(mountsBelow(directory).map(({ path }) => path)).size).to.equal(4)
      await mine.unmount()
      expect(gate.count(...node)).to.deep.equal([2, 2, 1, 1])
      expect(mountsBelow(directory).map(({ path }) => path)).to.include(yours.path)
      writeFileSync(join(yours.path, 'hello'), 'world')
      expect(await failureOf(volumes.delete(of))).to.include({ code: 'ERR_VOLUME_BUSY' })
      // For its controller it is one volume: it stays attached for who still has it.
      expect(gate.count('ControllerUnpublishVolume')).to.deep.equal([0])
      await yours.unmount()
      expect(gate.count('ControllerUnpublishVolume')).to.deep.equal([1])
    }),
  )

  it(
    'can be in one alloc more than once',
    aWatchedStory(async (story) => {
      const { volumes } = story
      const { gate, a } = await withVolume(story)
      const uses = [{ mountName: 'one' }, { mountName: 'two' }, {}].map((use) => ({ ...a, ...use }))
      const [one, two, plain] = await Promise.all(uses.map((use) => volumes.mount(use)))
      expect(new Set([one?.path, two?.path, plain?.path]).size).to.equal(3)
      await one?.unmount()
      writeFileSync(join(two!.path, 'hello'), 'world')
      expect(readFileSync(join(plain!.path, 'hello'), 'utf8')).to.equal('world')
      expect(existsSync(one!.path)).to.equal(false)
      await volumes.unmount(uses[2]!)
      await two?.unmount()
      expect(gate.count(...node)).to.deep.equal([1, 3, 3, 1])
    }),
  )
})
