import { execFileSync } from 'node:child_process'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { all } from '../lib/csi/client-support.js'
import { block, codeOf, HostpathDriver, mib, mount, needsMounts } from './hostpath-fixture.js'

describe('the hostpath driver that is killed', () => {
  let driver: HostpathDriver
  beforeEach(async () => {
    driver = await HostpathDriver.start()
  })
  afterEach(() => driver.end())

  const dataOf = (id: string) => driver.path('state', 'volumes', id, 'data', 'file')
  const recordOf = (id: string) => driver.path('state', 'volumes', id, 'record.json')

  it('keeps volumes, snapshots, groups and publications', async () => {
    const { client } = driver
    const { volumeId } = await driver.create('kept', { mutableParameters: { mode: '0711' }, parameters: { a: 'b' } })
    await client.controllerPublishVolume({ volumeId, nodeId: 'n1', volumeCapability: mount })
    await client.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 1n << 31n } })
    await client.createSnapshot({ name: 'kept', sourceVolumeId: volumeId })
    const { groupSnapshot } = await client.createVolumeGroupSnapshot({ name: 'kept', sourceVolumeIds: [volumeId] })
    const told = async () => ({
      volumes: await all(driver.client.allVolumes()),
      snapshots: await all(driver.client.allSnapshots()),
      group: await driver.client.getVolumeGroupSnapshot({
        groupSnapshotId: groupSnapshot.groupSnapshotId,
        snapshotIds: groupSnapshot.snapshots.map(({ snapshotId }) => snapshotId),
      }),
    })
    const before = await told()
    await driver.kill()
    await driver.run()
    expect(await told()).to.deep.equal(before)
    expect(before.volumes[0]?.status?.publishedNodeIds).to.deep.equal(['n1'])
  })

  it('keeps every change it has acknowledged, and no record is ever half-written', async () => {
    const ids = (await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => driver.create(name)))).map(
      ({ volumeId }) => volumeId,
    )
    const acknowledged = new Map<string, bigint>(ids.map((id) => [id, 0n]))
    let isKilled = false
    let steps = 0
    let tellEnough = (): void => undefined
    const enough = new Promise<void>((resolve) => (tellEnough = resolve))
    const grow = async (volumeId: string): Promise<void> => {
      for (let step = 1n; !isKilled; step++) {
        const capacityRange = { requiredBytes: (1n << 30n) + step * mib }
        const { capacityBytes } = await driver.client.controllerExpandVolume({ volumeId, capacityRange })
        acknowledged.set(volumeId, capacityBytes ?? 0n)
        if (++steps === 200) tellEnough()
      }
    }
    const watch = async (): Promise<void> => {
      while (!isKilled) for (const id of ids) JSON.parse(await readFile(recordOf(id), 'utf8'))
    }
    const growing = Promise.allSettled(ids.map(grow))
    const watching = watch()
    await enough
    isKilled = true
    await driver.kill()
    await growing
    await watching

    await driver.run()
    for (const [volumeId, capacityBytes] of acknowledged) {
      const { volume } = await driver.client.controllerGetVolume({ volumeId })
      expect(volume.capacityBytes).to.be.oneOf([capacityBytes, capacityBytes + mib])
    }
  })

  describe('while data is being copied', () => {
    let started: string
    let release: string
    let slowCopies: NodeJS.ProcessEnv
    let sources: string[]

    beforeEach(async () => {
      const programs = driver.path('programs')
      started = driver.path('started')
      release = driver.path('release')
      await mkdir(programs)
      execFileSync('mkfifo', [started, release])
      sources = []
      for (const name of ['one', 'two']) sources.push((await driver.create(name)).volumeId)
      for (const id of sources) await writeFile(dataOf(id), `all of ${id}`)
      const [, second = ''] = [...sources].sort()
      // Copies all but the second volume; of that one, the half.
      const half = `mkdir -p "$3"; echo half > "$3/file"; echo > '${started}'; read go < '${release}'; exit 1`
      const script = `#!/bin/sh\ncase "$2" in *${second}*) ${half} ;; esac\nexec /bin/cp "$@"\n`
      await writeFile(`${programs}/cp`, script, { mode: 0o755 })
      slowCopies = { PATH: `${programs}:${process.env['PATH']}` }
      await driver.kill()
      await driver.run(slowCopies)
    })

    /** Kills the driver in the middle of a copy that the call makes, and starts it again with the real program. */
    async function killDuring(call: Promise<unknown>): Promise<void> {
      const failed = codeOf(call)
      await readFile(started)
      await driver.kill()
      await failed
      await writeFile(release, '\n') // so that the program that was left behind ends
      await driver.run()
    }

    it('has no snapshot of a half, and makes a whole one when it is asked again', async () => {
      const [, sourceVolumeId = ''] = [...sources].sort()
      await killDuring(driver.client.createSnapshot({ name: 's', sourceVolumeId }))
      expect(await all(driver.client.allSnapshots())).to.deep.equal([])
      const { snapshot } = await driver.client.createSnapshot({ name: 's', sourceVolumeId })
      const file = driver.path('state', 'snapshots', snapshot.snapshotId, 'data', 'file')
      expect(await readFile(file, 'utf8')).to.equal(`all of ${sourceVolumeId}`)
    })

    it('has no clone of a half, and makes a whole one when it is asked again', async () => {
      const [, volumeId = ''] = [...sources].sort()
      const request = { volumeContentSource: { kind: 'volume', volumeId } } as const
      await killDuring(driver.create('clone', request))
      expect(await all(driver.client.allVolumes())).to.have.length(2)
      const clone = await driver.create('clone', request)
      expect(await readFile(dataOf(clone.volumeId), 'utf8')).to.equal(`all of ${volumeId}`)
    })

    it('has no group of a half, and what was taken for it is completed or can be deleted', async () => {
      const request = { name: 'g', sourceVolumeIds: sources }
      await killDuring(driver.client.createVolumeGroupSnapshot(request))
      const [alone] = await all(driver.client.allSnapshots())
      const { snapshotId = '', groupSnapshotId = '' } = alone?.snapshot ?? {}
      const absent = driver.client.getVolumeGroupSnapshot({ groupSnapshotId, snapshotIds: [snapshotId] })
      expect(await codeOf(absent)).to.equal('NOT_FOUND')
      await driver.client.deleteSnapshot({ snapshotId })
      const { groupSnapshot } = await driver.client.createVolumeGroupSnapshot(request)
      expect(groupSnapshot.groupSnapshotId).to.equal(groupSnapshotId)
      expect(groupSnapshot.snapshots).to.have.length(2)
      for (const { snapshotId: id, sourceVolumeId } of groupSnapshot.snapshots) {
        const file = driver.path('state', 'snapshots', id, 'data', 'file')
        expect(await readFile(file, 'utf8')).to.equal(`all of ${sourceVolumeId}`)
      }
    })

    it('answers ABORTED to all else that is asked of the volumes meanwhile, and serves others', async () => {
      const [first = '', second = ''] = [...sources].sort()
      const taken = codeOf(driver.client.createVolumeGroupSnapshot({ name: 'g', sourceVolumeIds: sources }))
      await readFile(started)
      for (const volumeId of [first, second]) {
        expect(await codeOf(driver.client.deleteVolume({ volumeId }))).to.equal('ABORTED')
      }
      const other = driver.client.createSnapshot({ name: 's', sourceVolumeId: second })
      expect(await codeOf(other)).to.equal('ABORTED')
      await driver.create('three')
      await writeFile(release, '\n')
      expect(await taken, 'the copy that has failed').to.equal('INTERNAL')
      expect(await all(driver.client.allSnapshots())).to.deep.equal([])
    })
  })

  it('finds its mounts and devices again, and takes them down', async function () {
    needsMounts(this)
    const { volumeId } = await driver.create('mounted')
    const { volumeId: device } = await driver.create('device', { volumeCapabilities: [block] })
    const paths = [await driver.publish(volumeId, 'a'), await driver.publish(device, 'b', block)] as const
    await driver.kill()
    await driver.run()
    expect(await driver.publish(volumeId, 'a')).to.equal(paths[0])
    expect(await driver.publish(device, 'b', block)).to.equal(paths[1])
    expect(await driver.mounts()).to.have.length(3)
    expect(driver.loopDevices()).to.have.length(1)
    for (const id of [volumeId, device]) {
      expect(await codeOf(driver.client.deleteVolume({ volumeId: id }))).to.equal('FAILED_PRECONDITION')
    }
    await driver.unpublish(volumeId, paths[0])
    await driver.unpublish(device, paths[1])
    for (const id of [volumeId, device]) await driver.client.deleteVolume({ volumeId: id })
    expect([...(await driver.mounts()), ...driver.loopDevices()]).to.deep.equal([])
    expect(await readdir(driver.path('state', 'volumes'))).to.deep.equal([])
  })

  it('stages and publishes again what is only on record, as after a reboot', async function () {
    needsMounts(this)
    const { volumeId } = await driver.create('rebooted')
    const { volumeId: device } = await driver.create('device', { volumeCapabilities: [block] })
    await driver.publish(volumeId, 'a')
    await driver.publish(device, 'b', block)
    await driver.kill()
    for (const path of (await driver.mounts()).reverse()) execFileSync('umount', [path])
    for (const loop of driver.loopDevices()) execFileSync('losetup', ['--detach', loop])
    await driver.run()
    const a = await driver.publish(volumeId, 'a')
    const b = await driver.publish(device, 'b', block)
    expect(await driver.mounts()).to.have.length(3)
    await driver.unpublish(volumeId, a)
    await driver.unpublish(device, b)
    expect(await driver.mounts()).to.deep.equal([])
  })
})
