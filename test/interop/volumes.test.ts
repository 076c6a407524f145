import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describeWithMounts, expectNothingLeft, phasesOf, volumeRecords } from '../stories/volumes-support.js'
import { aGoStory, type GoStory } from './go-story.js'
import { mountsBelow } from './mounts.js'
import { needsTools } from './tools.js'

const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
const request = { plugin: 'hostpath', name: 'data', volumeCapabilities: [access] }

const mounted = ({ directory }: GoStory): string[] => mountsBelow(join(directory, 'host')).map(({ path }) => path)

describeWithMounts('volumes of a driver in Go', () => {
  before(async function () {
    await needsTools(this)
  })

  it(
    'are made, mounted, shared, grown, measured, unmounted and deleted',
    aGoStory(async (story) => {
      const { volumes } = story.host
      await story.run({ attach: true })
      const { volume } = await volumes.create(request)
      const of = { plugin: 'hostpath', volumeId: volume.volumeId }
      const use = { ...of, volumeContext: volume.volumeContext }
      const writer = await volumes.mount({ ...use, allocId: 'writer' })
      writeFileSync(join(writer.path, 'hello'), 'world')
      const reader = await volumes.mount({ ...use, allocId: 'reader', access: { ...access, readonly: true } })
      expect(readFileSync(join(reader.path, 'hello'), 'utf8')).to.equal('world')
      expect(() => writeFileSync(join(reader.path, 'hello'), '')).to.throw('EROFS')
      const [state] = volumes.list()
      expect(state).to.deep.include({ staged: true, attachedTo: 'hostpath.csi.example' })
      const requiredBytes = 200n * 2n ** 30n
      expect(await volumes.expand({ ...of, capacityRange: { requiredBytes } })).to.deep.equal({
        capacityBytes: requiredBytes,
      })
      expect((await volumes.stats(of)).usage.map(({ unit }) => unit)).to.include('BYTES')
      expect((await volumes.health(of)).healthy).to.be.a('boolean')
      await writer.unmount()
      expect(mounted(story)).to.deep.equal([reader.path])
      await reader.unmount()
      expect([mounted(story), volumes.list()]).to.deep.equal([[], []])
      await volumes.delete(of)

      await story.host.close()
      await expectNothingLeft(story.stateDir)
    }),
  )

  for (const [when, isDead] of [
    ['between any two steps', true],
    ['as each step begins', false],
  ] as const)
    it(
      `are right where it is killed ${when}`,
      aGoStory(async (story) => {
        const { volumes } = story.host
        const { tasks } = story
        const task = await story.run(
          { attach: true },
          { restart: { mode: 'always', minDelayMs: 1, maxDelayMs: 1, attempts: 100 } },
        )
        /** Ends right, though the driver is killed before it or under its hands. */
        const step = async <T>(work: () => Promise<T>): Promise<T> => {
          const pid = await story.pidOf(task)
          tasks.skip()
          const begun = isDead ? undefined : work()
          process.kill(pid, 'SIGKILL')
          await tasks.until(({ kind }) => kind === 'exited')
          return begun ?? work()
        }
        const { volume } = await step(() => volumes.create(request))
        const of = { plugin: 'hostpath', volumeId: volume.volumeId, volumeContext: volume.volumeContext }
        const [a, b] = ['a', 'b'].map((allocId) => ({ ...of, allocId }))
        const { path: atA } = await step(() => volumes.mount(a!))
        writeFileSync(join(atA, 'hello'), 'world')
        const { path: atB } = await step(() => volumes.mount(b!))
        expect(mounted(story).sort()).to.deep.equal([atA, atB].sort())
        await step(() => volumes.unmount(a!))
        expect(mounted(story)).to.deep.equal([atB])
        expect(phasesOf(volumes.list())).to.deep.equal(['b mounted'])
        expect(volumes.list()).to.have.nested.property('[0].staged', true)
        expect(readFileSync(join(atB, 'hello'), 'utf8')).to.equal('world')
        await step(() => volumes.unmount(b!))
        expect([mounted(story), volumes.list(), existsSync(atB)]).to.deep.equal([[], [], false])
        await step(() => volumes.delete({ plugin: 'hostpath', volumeId: volume.volumeId }))

        await story.host.close()
        await expectNothingLeft(story.stateDir)
        expect(await volumeRecords(story.stateDir)).to.deep.equal([])
      }),
    )
})
