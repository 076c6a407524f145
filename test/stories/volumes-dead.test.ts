import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describeWithFuse, hungMount, staleMount } from '../support/dead-mounts.js'
import { aWatchedStory, created, phasesOf, type WatchedStory } from './volumes-support.js'

const mountRpcs = ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'] as const

/** A volume that `a` and `b` use, and another that `c` uses, with a file each. */
async function twoVolumes({ volumes }: Pick<WatchedStory, 'volumes'>) {
  const of = async (name: string) => ({ plugin: 'disk', volumeId: await created({ volumes }, name) })
  const [dying, living] = [await of('dying'), await of('living')]
  const [a, b, c] = [
    { ...dying, allocId: 'a' },
    { ...dying, allocId: 'b' },
    { ...living, allocId: 'c' },
  ]
  const [atA, atB, atC] = [await volumes.mount(a), await volumes.mount(b), await volumes.mount(c)].map(
    ({ path }) => path,
  )
  for (const path of [atA!, atC!]) writeFileSync(join(path, 'hello'), 'world')
  return { a, b, c, atA: atA!, atB: atB!, atC: atC! }
}

describeWithFuse('a mount that dies', () => {
  it(
    'is told of for each use when its plugin is replaced, and made anew by mounting it again',
    aWatchedStory(async (story) => {
      const { volumes, drive, events, states } = story
      await drive('d1')
      const { a, b, c, atA, atB, atC } = await twoVolumes(story)
      for (const path of [atA, atB]) staleMount(path)

      const { gate } = await drive('d2')
      gate.beforeUnpublish = (path) => {
        if ([atA, atB].includes(path)) execFileSync('umount', [path])
      }
      for (const { volumeId, allocId } of [a, b]) {
        const told = await events.until((event) => event.kind === 'stale' && event.allocId === allocId)
        expect(told).to.include({ volumeId })
        expect(told.message).to.include('ENOTCONN')
      }
      const dead = ['a stale', 'b stale', 'c mounted']
      await states.until((state) => phasesOf(state).join() === dead.join())
      const problems = volumes.list().map(({ claims }) => claims.map(({ problem }) => problem?.includes('ENOTCONN')))
      expect(problems).to.deep.equal([[true, true], [undefined]])
      const { healthy, problems: seen } = await volumes.health(a)
      expect([healthy, seen.filter(({ reason }) => reason === 'MountIsDead').length]).to.deep.equal([false, 2])

      expect((await volumes.mount(a)).path).to.equal(atA)
      expect(phasesOf(volumes.list())).to.deep.equal(['a mounted', 'b mounted', 'c mounted'])
      for (const path of [atA, atB, atC]) expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
      expect(gate.count(...mountRpcs)).to.deep.equal([1, 2, 2, 1])
      gate.beforeUnpublish = () => undefined
      for (const use of [a, b, c]) await volumes.unmount(use)
    }),
  )

  it(
    'or hangs, holds up neither the store nor other volumes, and is made anew too',
    aWatchedStory(async (story) => {
      const { host, volumes, drive, events, states } = story
      await drive('d1')
      const { a, b, c, atA, atC } = await twoVolumes(story)
      await volumes.unmount(b)
      const fuse = hungMount(atA, { killable: false })
      try {
        const { gate } = await drive('d2')
        gate.beforeUnpublish = (path) => {
          if (path !== atA) return
          fuse.die()
          execFileSync('umount', [path])
        }
        await fuse.asked // somebody looks at it, and waits
        const other = { plugin: 'disk', volumeId: await created(story, 'other'), allocId: 'd' }
        await (await volumes.mount(other)).unmount()
        await volumes.stats(c)
        const connection = { socketPath: join(story.directory, 'none.sock') }
        await (await host.registry.register({ type: 'csi-node', name: 'x', allocId: 'x', connection })).deregister()
        expect(readFileSync(join(atC, 'hello'), 'utf8')).to.equal('world')

        const told = await events.until(({ kind }) => kind === 'stale')
        expect(told).to.include({ volumeId: a.volumeId, allocId: 'a' })
        await states.until((state) => phasesOf(state).join() === 'a stale,c mounted')
        expect((await volumes.mount(a)).path).to.equal(atA)
        expect(readFileSync(join(atA, 'hello'), 'utf8')).to.equal('world')
        gate.beforeUnpublish = () => undefined
        for (const use of [a, c]) await volumes.unmount(use)
      } finally {
        fuse.die()
      }
    }),
  )
})
