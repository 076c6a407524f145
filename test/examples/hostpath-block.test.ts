import { open, stat, writeFile } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { all } from '../lib/csi/client-support.js'
import { block, codeOf, HostpathDriver, mib, mount, needsMounts, noMounts } from './hostpath-fixture.js'

const kib64 = 65_536n

describe('the block volumes of the hostpath driver', () => {
  let driver: HostpathDriver
  let hasStarted = false
  before(async function () {
    needsMounts(this)
    driver = await HostpathDriver.start()
    hasStarted = true
  })
  after(() => (hasStarted ? driver.end() : undefined))

  const create = (name: string, request = {}) =>
    driver.create(name, { volumeCapabilities: [block], capacityRange: { requiredBytes: mib }, ...request })
  const fileOf = (volumeId: string) => driver.path('state', 'volumes', volumeId, 'data')
  const sizeOf = (device: string) =>
    BigInt(execFileSync('blockdev', ['--getsize64', device], { encoding: 'utf8' }).trim())
  async function write(path: string, text: string, position: bigint): Promise<void> {
    const file = await open(path, 'r+')
    try {
      await file.write(text, Number(position))
      await file.sync()
    } finally {
      await file.close()
    }
  }
  async function read(path: string, position: bigint, length: number): Promise<string> {
    const file = await open(path)
    const { buffer } = await file.read({ buffer: Buffer.alloc(length), position: Number(position) })
    await file.close()
    return buffer.toString()
  }

  it('are devices of their size, which what is written to them outlives', async () => {
    const { volumeId, capacityBytes } = await create('device', { capacityRange: { requiredBytes: mib + 1n } })
    expect(capacityBytes).to.equal(mib + 4096n)
    for (const text of ['first', 'second']) {
      const path = await driver.publish(volumeId, 'device', block)
      expect(await driver.publish(volumeId, 'device', block)).to.equal(path)
      expect((await stat(path)).isBlockDevice()).to.equal(true)
      expect(sizeOf(path)).to.equal(mib + 4096n)
      if (text === 'second') expect(await read(path, kib64, 5)).to.equal('first')
      await write(path, text, kib64)
      const { usage } = await driver.client.nodeGetVolumeStats({ volumeId, volumePath: path })
      expect(usage).to.have.length(1)
      expect(usage[0]).to.include({ unit: 'BYTES', total: mib + 4096n })
      expect(await codeOf(driver.client.deleteVolume({ volumeId }))).to.equal('FAILED_PRECONDITION')
      await driver.unpublish(volumeId, path)
      await driver.unpublish(volumeId, path)
      expect(await codeOf(driver.client.nodeGetVolumeStats({ volumeId, volumePath: path }))).to.equal('NOT_FOUND')
      expect(driver.loopDevices()).to.deep.equal([])
    }
    expect(await driver.mounts()).to.deep.equal([])
  })

  it('are devices nobody can write to where they are read-only', async () => {
    const { volumeId } = await create('readonly')
    const path = await driver.publish(volumeId, 'readonly', block, true)
    const failure: unknown = await write(path, 'changed', 0n).catch((error: unknown) => error)
    expect(failure).to.have.property('code').that.is.oneOf(['EPERM', 'EACCES', 'EROFS'])
    expect(await read(path, 0n, 1)).to.equal('\0')
    await driver.unpublish(volumeId, path)
    expect(driver.loopDevices()).to.deep.equal([])
  })

  it('grow while they are in use', async () => {
    const { client } = driver
    const { volumeId } = await create('growing')
    const volumePath = await driver.publish(volumeId, 'growing', block)
    const capacityRange = { requiredBytes: 2n * mib }
    const grown = await client.controllerExpandVolume({ volumeId, capacityRange })
    expect(grown).to.deep.equal({ capacityBytes: 2n * mib, nodeExpansionRequired: true })
    expect(sizeOf(volumePath)).to.equal(mib)
    for (let again = 0; again < 2; again++) await client.nodeExpandVolume({ volumeId, volumePath, capacityRange })
    expect(sizeOf(volumePath)).to.equal(2n * mib)
    await driver.unpublish(volumeId, volumePath)
  })

  it('are not taken for mount volumes, nor mount volumes for them', async () => {
    const { volumeId } = await create('kinds')
    const { volumeId: other } = await driver.create('files')
    const { snapshot } = await driver.client.createSnapshot({ name: 'kinds', sourceVolumeId: volumeId })
    const volumeContentSource = { kind: 'snapshot', snapshotId: snapshot.snapshotId } as const
    const check = await driver.client.validateVolumeCapabilities({ volumeId, volumeCapabilities: [mount] })
    expect(check).to.deep.equal({ message: 'it is a block volume' })
    for (const [refused, code] of [
      [() => driver.stage(volumeId), 'INVALID_ARGUMENT'],
      [() => driver.stage(other, block), 'INVALID_ARGUMENT'],
      [() => driver.create('kinds'), 'ALREADY_EXISTS'],
      [() => driver.create('both', { volumeCapabilities: [mount, block] }), 'INVALID_ARGUMENT'],
      [() => driver.create('restored', { volumeContentSource }), 'INVALID_ARGUMENT'],
    ] as const) {
      expect(await codeOf(refused())).to.equal(code)
    }
  })

  it('tell which blocks of their snapshots are in use, and which have changed', async () => {
    const { client } = driver
    const { volumeId } = await create('mapped', { capacityRange: { requiredBytes: 16n * kib64 + 4096n } })
    await write(fileOf(volumeId), 'a', 0n)
    await write(fileOf(volumeId), 'b', 3n * kib64 + 17n)
    await write(fileOf(volumeId), 'c', 16n * kib64)
    const snapshotOf = async (name: string) =>
      (await client.createSnapshot({ name, sourceVolumeId: volumeId })).snapshot.snapshotId
    const base = await snapshotOf('base')
    await write(fileOf(volumeId), '\0', 3n * kib64 + 17n)
    await write(fileOf(volumeId), 'd', 5n * kib64)
    const target = await snapshotOf('target')

    const allocated = await all(client.getMetadataAllocated({ snapshotId: base, maxResults: 2 }))
    const extent = (byteOffset: bigint, sizeBytes = kib64) => ({ byteOffset, sizeBytes })
    expect(allocated.map(({ blockMetadata }) => blockMetadata)).to.deep.equal([
      [extent(0n), extent(3n * kib64)],
      [extent(16n * kib64, 4096n)],
    ])
    expect(allocated[0]).to.include({
      blockMetadataType: 'VARIABLE_LENGTH',
      volumeCapacityBytes: 16n * kib64 + 4096n,
    })
    const delta = { baseSnapshotId: base, targetSnapshotId: target }
    const changed = await all(client.getMetadataDelta(delta))
    expect(changed.flatMap(({ blockMetadata }) => blockMetadata)).to.deep.equal([
      extent(3n * kib64),
      extent(5n * kib64),
    ])
    const later = await all(client.getMetadataDelta({ ...delta, startingByteOffset: 4n * kib64 }))
    expect(later.flatMap(({ blockMetadata }) => blockMetadata)).to.deep.equal([extent(5n * kib64)])
    expect(await all(client.getMetadataDelta({ baseSnapshotId: base, targetSnapshotId: base }))).to.deep.equal([])

    const beyond = client.getMetadataAllocated({ snapshotId: base, startingByteOffset: mib * mib })
    expect(await codeOf(all(beyond))).to.equal('OUT_OF_RANGE')
    const { volumeId: files } = await driver.create('of-files')
    const { snapshot } = await client.createSnapshot({ name: 'of-files', sourceVolumeId: files })
    const ofFiles = client.getMetadataAllocated({ snapshotId: snapshot.snapshotId })
    expect(await codeOf(all(ofFiles))).to.equal('INVALID_ARGUMENT')
    const absent = client.getMetadataAllocated({ snapshotId: `snapshot-${'0'.repeat(32)}` })
    expect(await codeOf(all(absent))).to.equal('NOT_FOUND')
  })

  it('are published nowhere where something else is', async () => {
    const { volumeId } = await create('occupied')
    await writeFile(driver.path('file'), 'precious')
    expect(await codeOf(driver.publish(volumeId, 'file', block))).to.equal('INTERNAL')
    await driver.client.nodeUnpublishVolume({ volumeId, targetPath: driver.path('file') })
    expect((await stat(driver.path('file'))).size).to.equal(8)
    await driver.unpublish(volumeId, driver.path('file'))
    expect(driver.loopDevices()).to.deep.equal([])
  })
})

it('the hostpath driver says that it has no block volumes where there are no loop devices', async () => {
  const driver = await HostpathDriver.start([], noMounts)
  try {
    expect(await codeOf(driver.create('device', { volumeCapabilities: [block] }))).to.equal('INVALID_ARGUMENT')
  } finally {
    await driver.end()
  }
})
