import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { Keyv } from 'keyv'
import type { HostInit } from '../../streams/plugin-host.js'
import { mountsBelow } from '../interop/mounts.js'
import { isHealthy, shortTiming } from './support.js'
import {
  aDriverStory,
  created,
  describeWithMounts,
  diskDriver,
  expectNothingLeft,
  failureOf,
  inMountDirectory,
  phasesOf,
  withWatched,
  type WatchedDriver,
  type WatchedStory,
} from './volumes-support.js'

const timing = shortTiming
const isNode = ({ plugin }: { plugin: { type: string } }): boolean => plugin.type === 'csi-node'

async function gone({ health }: WatchedStory, driver: WatchedDriver): Promise<void> {
  health.skip()
  await driver.end()
  await health.until((event) => isNode(event) && !isHealthy(event))
}

/** A volume in use by `a`, with a file in it. */
async function inUse({ volumes, drive }: WatchedStory) {
  const driver = await drive('d1')
  const use = { plugin: 'disk', volumeId: await created({ volumes }), allocId: 'a' }
  const { path } = await volumes.mount(use)
  writeFileSync(join(path, 'hello'), 'world')
  return { driver, use, path }
}

describeWithMounts('a volume whose plugin is not there', () => {
  it('is unmounted as soon as its plugin is back', () =>
    inMountDirectory(async (directory) => {
      await withWatched(directory, { timing }, async (story) => {
        const { driver, use } = await inUse(story)
        await gone(story, driver)
        story.states.skip()
        const unmounted = story.volumes.unmount(use)
        await story.states.until((state) => phasesOf(state).includes('a unmounting'))
        await driver.begin()
        await unmounted
        expect(story.volumes.list()).to.deep.equal([])
      })
      await expectNothingLeft(join(directory, 'host'))
    }))

  it('is unmounted as soon as its plugin is back also where nobody waits for it any more', () =>
    inMountDirectory(async (directory) => {
      await withWatched(directory, { timing }, async (story) => {
        const { driver, use } = await inUse(story)
        await gone(story, driver)
        const caller = new AbortController()
        story.states.skip()
        const failure = failureOf(story.volumes.unmount(use, { signal: caller.signal }))
        await story.states.until((state) => phasesOf(state).includes('a unmounting'))
        caller.abort()
        expect(await failure).to.include({ code: 'ERR_ABORTED' })
        story.states.skip()
        await driver.begin()
        await story.states.until((state) => state.length === 0)
      })
      await expectNothingLeft(join(directory, 'host'))
    }))

  it(
    'is mounted as soon as its plugin is there for the first time',
    aDriverStory(async (story) => {
      const { volumes, directory } = story
      // Nobody says for how long: with what was asked for before there was a plugin.
      const made = created(story)
      story.run(diskDriver(directory))
      const use = { plugin: 'disk', volumeId: await made, allocId: 'a' }
      await using mounted = await volumes.mount(use)
      expect(mountsBelow(directory).map(({ path }) => path)).to.include(mounted.path)
    }),
  )

  it('is mounted as soon as its plugin is well again', () =>
    inMountDirectory(async (directory) => {
      await withWatched(directory, { timing }, async (story) => {
        const driver = await story.drive('d1')
        const use = { plugin: 'disk', volumeId: await created(story), allocId: 'a' }
        await gone(story, driver)
        const mounted = story.volumes.mount(use)
        await driver.begin()
        await (await mounted).unmount()
      })
      await expectNothingLeft(join(directory, 'host'))
    }))

  it('is uncertain when its user is restored before its plugin, and there for it with the plugin', () =>
    inMountDirectory(async (directory) => {
      let use = { plugin: 'disk', volumeId: '', allocId: 'a' }
      let path = ''
      await withWatched(directory, {}, async (story) => void ({ use, path } = await inUse(story)))
      await withWatched(directory, { timing }, async (story) => {
        const { volumes, drive, events, states } = story
        await states.until((state) => phasesOf(state).join() === 'a uncertain')
        const again = volumes.mount(use)
        const { gate } = await drive('d1', false)
        expect((await again).path).to.equal(path)
        expect(phasesOf(volumes.list())).to.deep.equal(['a mounted'])
        expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
        expect(gate.count('NodeUnpublishVolume', 'NodeUnstageVolume')).to.deep.equal([0, 0])
        expect(events.all.map(({ kind }) => kind)).not.to.include('failed')
        await volumes.unmount(use)
      })
      await expectNothingLeft(join(directory, 'host'))
    }))
})

describeWithMounts('a host that is closed while volumes are mounted', () => {
  for (const [title, store] of [
    ['a store of its own', undefined],
    ['a Keyv that it was given', new Keyv()],
  ] as const)
    it(`leaves them mounted, and confirms them when it is opened again, with ${title}`, () =>
      inMountDirectory(async (directory) => {
        const init: Partial<HostInit> = store ? { store } : {}
        let use = { plugin: 'disk', volumeId: '', allocId: 'a' }
        let path = ''
        let before: unknown[] = []
        await withWatched(directory, init, async (story) => {
          ;({ use, path } = await inUse(story))
          before = mountsBelow(directory)
        })
        expect(before).to.have.length(2)
        expect(mountsBelow(directory)).to.deep.equal(before)
        expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')

        await withWatched(directory, init, async ({ drive, volumes, events, states }) => {
          expect(phasesOf(volumes.list())).to.deep.equal(['a uncertain'])
          await drive('d1', false)
          const { volumeId, plugin } = use
          const kept = await events.until(({ kind }) => kind === 'kept')
          expect(kept).to.include({ volumeId, plugin, namespace: 'default', allocId: 'a' })
          await states.until((state) => phasesOf(state).join() === 'a mounted')
          expect(mountsBelow(directory)).to.deep.equal(before)
          await volumes.unmount(use)
        })
        expect(existsSync(path)).to.equal(false)
        if (store) {
          const keys: string[] = []
          for await (const [key] of store.iterator!({})) keys.push(String(key))
          expect(keys.filter((key) => key.includes('plugin'))).not.to.deep.equal([])
          expect(keys.filter((key) => key.includes('volume'))).to.deep.equal([])
        }
        await expectNothingLeft(join(directory, 'host'))
      }))
})
