import { mkdir, rename, rm, truncate } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { all } from '../lib/csi/client-support.js'
import { block, codeOf, HostpathDriver, needsMounts } from './hostpath-fixture.js'

describe('the health the hostpath driver tells', () => {
  let driver: HostpathDriver
  beforeEach(async () => {
    driver = await HostpathDriver.start()
  })
  afterEach(() => driver.end())

  it('is good for volumes whose data is there', async () => {
    const { volumeId } = await driver.create('well')
    const healthy = { volumeHealth: { volumeId, healthy: true, problems: [] } }
    expect(await driver.client.controllerGetVolumeHealth({ volumeId })).to.deep.equal(healthy)
    const volumePublishPath = await driver.publish(volumeId, 'well')
    expect(await driver.client.nodeGetVolumeHealth({ volumeId })).to.deep.equal(healthy)
    expect(await driver.client.nodeGetVolumeHealth({ volumeId, volumePublishPath })).to.deep.equal(healthy)
    const elsewhere = { volumeId, volumePublishPath: driver.path('elsewhere') }
    expect(await codeOf(driver.client.nodeGetVolumeHealth(elsewhere))).to.equal('NOT_FOUND')
    const absent = `volume-${'0'.repeat(32)}`
    expect(await codeOf(driver.client.controllerGetVolumeHealth({ volumeId: absent }))).to.equal('NOT_FOUND')
    await driver.unpublish(volumeId, volumePublishPath)
  })

  it('is the loss of data for a volume whose directory is gone, which can still be taken down', async () => {
    const { client } = driver
    const { volumeId } = await driver.create('lost')
    const { volumeId: well } = await driver.create('well')
    const volumePath = await driver.publish(volumeId, 'lost')
    await rm(driver.path('state', 'volumes', volumeId, 'data'), { recursive: true })

    const { volumeHealth } = await client.controllerGetVolumeHealth({ volumeId })
    expect(volumeHealth.healthy).to.equal(false)
    expect(volumeHealth.problems.map(({ status, reason }) => [status, reason])).to.deep.equal([
      ['DATA_LOSS', 'DataMissing'],
    ])
    const listed = await all(client.allVolumeHealth({ maxEntries: 1 }))
    expect(listed).to.deep.include(volumeHealth)
    expect(listed.find((health) => health.volumeId === well)?.healthy).to.equal(true)
    expect((await client.nodeGetVolumeHealth({ volumeId })).volumeHealth.healthy).to.equal(false)

    await driver.unpublish(volumeId, volumePath)
    expect(await driver.mounts()).to.deep.equal([])
    expect(await codeOf(driver.stage(volumeId))).to.equal('INTERNAL')
    await client.deleteVolume({ volumeId })
  })

  it('is the lack of access where something else took a volume off its path', async function () {
    needsMounts(this)
    const { volumeId } = await driver.create('detached')
    const volumePublishPath = await driver.publish(volumeId, 'detached')
    execFileSync('umount', [volumePublishPath])
    const { volumeHealth } = await driver.client.nodeGetVolumeHealth({ volumeId, volumePublishPath })
    expect(volumeHealth.problems).to.deep.equal([
      { status: 'INACCESSIBLE', reason: 'NotAttached', message: `it is gone from ${volumePublishPath}` },
    ])
    await driver.publish(volumeId, 'detached') // asked for again, it is put right
    expect((await driver.client.nodeGetVolumeHealth({ volumeId })).volumeHealth.healthy).to.equal(true)
    await driver.unpublish(volumeId, volumePublishPath)
  })

  it('is the loss of data for a block volume that was cut short, or lost its file while it was in use', async function () {
    needsMounts(this)
    const { volumeId } = await driver.create('cut', { volumeCapabilities: [block] })
    const file = driver.path('state', 'volumes', volumeId, 'data')
    const path = await driver.publish(volumeId, 'cut', block)
    const reasonsOf = async () =>
      (await driver.client.controllerGetVolumeHealth({ volumeId })).volumeHealth.problems.map(({ reason }) => reason)
    expect(await reasonsOf()).to.deep.equal([])
    await truncate(file, 4096)
    expect(await reasonsOf()).to.deep.equal(['DataTruncated'])
    await rm(file)
    await mkdir(file)
    expect(await reasonsOf()).to.deep.equal(['DataReplaced'])
    await driver.unpublish(volumeId, path)
    expect(driver.loopDevices()).to.deep.equal([])
  })

  it('is told of the storage, too', async () => {
    expect((await driver.client.nodeGetStorageHealth()).backendHealth).to.deep.equal([])
    await rename(driver.path('state'), driver.path('moved'))
    const { backendHealth } = await driver.client.nodeGetStorageHealth()
    expect(backendHealth.map(({ status, reason }) => [status, reason])).to.deep.equal([
      ['STORAGE_UNREACHABLE', 'StateDirUnusable'],
    ])
  })
})
