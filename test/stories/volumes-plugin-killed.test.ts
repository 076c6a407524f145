import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { TaskSpec } from '../../lib/task/driver.js'
import { mountsBelow } from '../interop/mounts.js'
import { crashCases, pointOf, useBy } from './volumes-cases.js'
import { afterTheCrash, beforeTheCrash } from './volumes-crashed.js'
import { aDriverStory, created, describeWithMounts, diskDriver, failureOf } from './volumes-support.js'

const program = fileURLToPath(new URL('./programs/volume-driver.ts', import.meta.url))

/** A driver that is killed at points, as soon as they are written to the file. */
function killedAt(directory: string, file: string, restart: NonNullable<TaskSpec['restart']> = {}): TaskSpec {
  return diskDriver(directory, {
    command: [process.execPath, '--import', 'tsx/esm', program, join(directory, 'data'), file],
    restart: { minDelayMs: 1, ...restart },
  })
}

describeWithMounts('a plugin that is killed while it mounts and unmounts', () => {
  it(
    'is gone on with when it has been restarted, wherever it was with each volume',
    aDriverStory(async (story) => {
      const { directory, volumes, tasks } = story
      const file = join(directory, 'points.json')
      story.run(killedAt(directory, file))
      const ids = await beforeTheCrash(story)
      const other = volumes.list().flatMap(({ claims }) => claims.filter(({ allocId }) => allocId === 'other'))
      expect(other).to.have.length(4)
      tasks.skip()

      writeFileSync(file, JSON.stringify(crashCases.map((one, at) => pointOf(one, ids[at]!))))
      const work = crashCases.map(({ what }, at) => volumes[what](useBy('killed', ids[at]!)))
      expect(await tasks.until(({ kind }) => kind === 'exited')).to.include({ signal: 'SIGKILL' })
      await Promise.all(work)
      expect(existsSync(file)).to.equal(false)
      await afterTheCrash(story, ids)
      expect(story.problems.all).to.deep.equal([])
    }),
  )

  it(
    'fails a mount whose caller gives up before it is back, and has it undone as soon as it is; then it can be repeated',
    aDriverStory(async (story) => {
      const { directory, volumes, tasks, events, states } = story
      const file = join(directory, 'points.json')
      const task = killedAt(directory, file, { minDelayMs: 60_000, maxDelayMs: 60_000 })
      story.run(task)
      const volumeId = await created(story)
      const use = useBy('killed', volumeId)
      writeFileSync(file, JSON.stringify([{ rpc: 'NodeStageVolume', when: 'after', volumeId }]))
      const caller = new AbortController()
      const failure = failureOf(volumes.mount(use, { signal: caller.signal }))
      expect(await tasks.until(({ kind }) => kind === 'exited')).to.include({ signal: 'SIGKILL' })
      caller.abort()
      expect(await failure).to.include({ code: 'ERR_ABORTED' })
      expect((await failure).message).to.include('NodeStageVolume')
      await events.until(({ kind }) => kind === 'failed')
      expect(mountsBelow(directory)).to.have.length(1)

      states.skip()
      story.order(task, 'resume')
      await states.until((state) => state.length === 0)
      expect(mountsBelow(directory)).to.deep.equal([])
      await using mounted = await volumes.mount(use)
      expect(mountsBelow(directory).map(({ path }) => path)).to.include(mounted.path)
    }),
  )
})
