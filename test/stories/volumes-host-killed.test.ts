import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { VolumeWork } from './programs/volume-host.js'
import { crashCases, plugin, pointOf, useBy } from './volumes-cases.js'
import { afterTheCrash, beforeTheCrash } from './volumes-crashed.js'
import { Gate, watchedDriver } from './volumes-driver.js'
import { describeWithMounts, expectNothingLeft, inMountDirectory, withVolumes } from './volumes-support.js'

function hostProcess(stateDir: string, work: VolumeWork[]): ChildProcess {
  const program = fileURLToPath(new URL('./programs/volume-host.ts', import.meta.url))
  return spawn(process.execPath, ['--import', 'tsx/esm', program, stateDir, JSON.stringify(work)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

describeWithMounts('a host that is killed while it mounts and unmounts', () => {
  it('has each volume whole or not at all when it is opened again, wherever it was with it', () =>
    inMountDirectory(async (directory) => {
      const [stateDir, socketPath] = [join(directory, 'host'), join(directory, 'csi.sock')]
      const gate = new Gate()
      await using _driver = await watchedDriver({ socketPath, stateDir: join(directory, 'data'), at: gate.at })
      let ids: string[] = []
      await withVolumes(stateDir, { task$: NEVER }, async (story) => {
        for (const type of ['csi-controller', 'csi-node'])
          await story.host.registry.register({ type, name: plugin, allocId: 'd1', connection: { socketPath } })
        ids = await beforeTheCrash(story)
      })

      const allAreHeld = gate.hold(...crashCases.map((one, at) => pointOf(one, ids[at]!)))
      const work = crashCases.map(({ what }, at) => ({ what, request: useBy('killed', ids[at]!) }))
      const child = hostProcess(stateDir, work)
      let said = ''
      child.stdout?.on('data', (data: Buffer) => (said += data.toString()))
      const ended = once(child, 'close')
      await allAreHeld
      child.kill('SIGKILL')
      await ended
      expect(said).to.equal('')
      gate.letGo({ failing: true })
      gate.calls.length = 0

      await withVolumes(stateDir, { task$: NEVER }, async (story) => {
        await afterTheCrash(story, ids)
        const unstaged = gate.calls.filter(({ rpc }) => rpc === 'NodeUnstageVolume').map(({ volumeId }) => volumeId)
        const shared = ids.filter((_, at) => crashCases[at]?.isShared)
        // In the end, when nobody has them any more.
        expect(unstaged.filter((volumeId) => shared.includes(volumeId)).sort()).to.deep.equal(shared.sort())
        expect(story.problems.all).to.deep.equal([])
      })
      await expectNothingLeft(stateDir)
    }))
})
