import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { mountsBelow } from '../interop/mounts.js'
import { aDriverStory, describeWithMounts, diskDriver, mountAccess } from './volumes-support.js'

const mib = 2n ** 20n

describeWithMounts('a volume of a driver that runs as a task', () => {
  it(
    'that somebody else has unmounted is told as not mounted, and is there again for who mounts it again',
    aDriverStory(async (story) => {
      const { volumes, directory, events } = story
      story.run(diskDriver(directory))
      const { volume } = await volumes.create({ plugin: 'disk', name: 'data', volumeCapabilities: [mountAccess] })
      const use = { plugin: 'disk', volumeId: volume.volumeId, allocId: 'a' }
      const { path } = await volumes.mount(use)
      writeFileSync(join(path, 'hello'), 'world')
      execFileSync('umount', [path])
      const { healthy, problems } = await volumes.health(use)
      expect(healthy).to.equal(false)
      expect(problems).to.deep.include({
        status: 'INACCESSIBLE',
        reason: 'NotMounted',
        message: `nothing is mounted at ${path}`,
      })
      expect(await events.until(({ kind }) => kind === 'stale')).to.include({ allocId: 'a' })
      expect(volumes.list()[0]?.claims[0]).to.include({ phase: 'stale' })
      expect((await volumes.mount(use)).path).to.equal(path)
      expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
      expect(await volumes.health(use)).to.deep.equal({ healthy: true, problems: [] })
      execFileSync('umount', [path])
      await volumes.mount(use) // without anybody having looked
      expect(readFileSync(join(path, 'hello'), 'utf8')).to.equal('world')
      await volumes.unmount(use)
      await volumes.delete({ plugin: 'disk', volumeId: use.volumeId })
    }),
  )

  it(
    'is made, mounted, shared, grown, measured, copied, unmounted and deleted, and nothing is left of it',
    aDriverStory(async (story) => {
      const { volumes, directory, events, problems } = story
      story.run(diskDriver(directory))
      const access = { kind: 'mount', accessMode: 'SINGLE_NODE_MULTI_WRITER' } as const
      const made = await volumes.create({
        plugin: 'disk',
        name: 'data',
        volumeCapabilities: [access],
        capacityRange: { requiredBytes: 4n * mib },
      })
      const of = { plugin: 'disk', volumeId: made.volume.volumeId }
      expect(made.volume.capacityBytes).to.equal(4n * mib)

      const { path } = await volumes.mount({ ...of, allocId: 'writer', access })
      writeFileSync(join(path, 'hello'), 'world')
      const reader = { ...of, allocId: 'reader', access: { ...access, readonly: true } }
      const read = await volumes.mount(reader)
      expect(readFileSync(join(read.path, 'hello'), 'utf8')).to.equal('world')
      expect(() => writeFileSync(join(read.path, 'hello'), 'changed')).to.throw('EROFS')
      const [state] = volumes.list()
      expect(state).to.deep.include({ ...of, staged: true, attachedTo: 'n1' })
      expect(mountsBelow(directory).filter(({ path: at }) => at === read.path)).to.deep.equal([
        { path: read.path, readonly: true },
      ])

      expect(await volumes.expand({ ...of, capacityRange: { requiredBytes: 8n * mib } })).to.deep.equal({
        capacityBytes: 8n * mib,
      })
      const { usage } = await volumes.stats(of)
      expect(usage.map(({ unit }) => unit)).to.include('BYTES')
      expect(await volumes.health(of)).to.deep.equal({ healthy: true, problems: [] })

      const { snapshot } = await volumes.snapshot({ plugin: 'disk', sourceVolumeId: of.volumeId, name: 'then' })
      writeFileSync(join(path, 'hello'), 'later')
      const source = { kind: 'snapshot', snapshotId: snapshot.snapshotId } as const
      const clone = await volumes.create({
        plugin: 'disk',
        name: 'clone',
        volumeCapabilities: [mountAccess],
        volumeContentSource: source,
      })
      const cloned = { plugin: 'disk', volumeId: clone.volume.volumeId }
      {
        await using mounted = await volumes.mount({ ...cloned, allocId: 'other' })
        expect(readFileSync(join(mounted.path, 'hello'), 'utf8')).to.equal('world')
      }

      await volumes.unmount({ ...of, allocId: 'writer', access })
      expect(readFileSync(join(read.path, 'hello'), 'utf8')).to.equal('later')
      await volumes.unmount(reader)
      expect(volumes.list()).to.deep.equal([])
      await volumes.deleteSnapshot({ plugin: 'disk', snapshotId: snapshot.snapshotId })
      for (const one of [of, cloned]) await volumes.delete(one)
      expect(events.all.map(({ kind, allocId, call }) => `${kind} ${allocId ?? call}`)).to.deep.equal([
        'done createVolume',
        'mounted writer',
        'mounted reader',
        'done createSnapshot',
        'done createVolume',
        'mounted other',
        'unmounted other',
        'unmounted writer',
        'unmounted reader',
        'done deleteSnapshot',
        'done deleteVolume',
        'done deleteVolume',
      ])
      expect(problems.all).to.deep.equal([])
    }),
  )
})
