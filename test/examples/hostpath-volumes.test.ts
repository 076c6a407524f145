import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { codeOf, HostpathDriver, mib, mount, needsMounts, noMounts } from './hostpath-fixture.js'

const nowhere = `volume-${'0'.repeat(32)}`

describe('the volumes of the hostpath driver', () => {
  let driver: HostpathDriver
  before(async () => {
    driver = await HostpathDriver.start(['--topology', 'zone=a', '--topology', 'rack=7', '--max-volumes', '2'])
  })
  after(() => driver.end())

  it('are offered with everything CSI has for them', async () => {
    const { client } = driver
    const { service, volumeExpansion } = await client.getPluginCapabilities()
    expect(service.names).to.have.members([
      'CONTROLLER_SERVICE',
      'GROUP_CONTROLLER_SERVICE',
      'SNAPSHOT_METADATA_SERVICE',
      'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS',
      'VOLUME_ACCESSIBILITY_CONSTRAINTS',
    ])
    expect(volumeExpansion.names).to.deep.equal(['ONLINE'])
    const { names } = await client.controllerGetCapabilities()
    expect(names).to.have.length(16).and.to.include.members(['CLONE_VOLUME', 'MODIFY_VOLUME', 'LIST_VOLUME_HEALTH'])
    const node = await client.nodeGetCapabilities()
    expect(node.names).to.have.length(7).and.to.include.members(['EXPAND_VOLUME', 'GET_STORAGE_HEALTH'])
  })

  it('are where the driver is, and are not made for anywhere else', async () => {
    const here = { zone: 'a', rack: '7' }
    const { accessibleTopology } = await driver.client.nodeGetInfo()
    expect(accessibleTopology).to.deep.equal(here)
    const made = await driver.create('here', {
      accessibilityRequirements: { requisite: [{ zone: 'b' }, { zone: 'a' }] },
    })
    expect(made.accessibleTopology).to.deep.equal([here])
    const elsewhere = driver.create('elsewhere', { accessibilityRequirements: { requisite: [{ zone: 'b' }] } })
    expect(await codeOf(elsewhere)).to.equal('RESOURCE_EXHAUSTED')
    const { availableBytes } = await driver.client.getCapacity({ accessibleTopology: { zone: 'b' } })
    expect(availableBytes).to.equal(0n)
    expect((await driver.client.getCapacity({ accessibleTopology: here })).availableBytes > 0n).to.equal(true)
  })

  it('are one for one name, and refused where what is asked for differs', async () => {
    const request = { parameters: { tier: 'fast' }, capacityRange: { requiredBytes: mib } }
    const first = await driver.create('one', request)
    expect(first).to.deep.include({ volumeContext: { tier: 'fast' }, capacityBytes: mib })
    expect(await driver.create('one', request)).to.deep.equal(first)
    for (const other of [
      { ...request, parameters: {} },
      { ...request, parameters: { tier: 'slow' } },
      { ...request, capacityRange: { requiredBytes: 2n * mib } },
      { ...request, volumeContentSource: { kind: 'volume' as const, volumeId: first.volumeId } },
    ]) {
      expect(await codeOf(driver.create('one', other))).to.equal('ALREADY_EXISTS')
    }
    const check = { volumeId: first.volumeId, volumeCapabilities: [mount] }
    const same = await driver.client.validateVolumeCapabilities({ ...check, parameters: { tier: 'fast' } })
    expect(same.confirmed?.parameters).to.deep.equal({ tier: 'fast' })
    const other = await driver.client.validateVolumeCapabilities({ ...check, parameters: { tier: 'slow' } })
    expect(other).to.deep.equal({ message: "parameters is not the volume's" })
  })

  it('are published to one node, with one access, as often as it is asked', async () => {
    const { client } = driver
    const { volumeId } = await driver.create('published')
    const request = { volumeId, nodeId: 'n1', volumeCapability: mount }
    for (let again = 0; again < 2; again++) {
      expect(await client.controllerPublishVolume(request)).to.deep.equal({ publishContext: { readonly: 'false' } })
    }
    expect(await codeOf(client.controllerPublishVolume({ ...request, readonly: true }))).to.equal('ALREADY_EXISTS')
    expect(await codeOf(client.controllerPublishVolume({ ...request, nodeId: 'n2' }))).to.equal('NOT_FOUND')
    expect(await codeOf(client.controllerPublishVolume({ ...request, volumeId: nowhere }))).to.equal('NOT_FOUND')
    const { status } = await client.controllerGetVolume({ volumeId })
    expect(status?.publishedNodeIds).to.deep.equal(['n1'])
    const { entries } = await client.listVolumes()
    expect(entries.find(({ volume }) => volume.volumeId === volumeId)?.status).to.deep.equal(status)
    expect(await codeOf(client.deleteVolume({ volumeId }))).to.equal('FAILED_PRECONDITION')
    for (let again = 0; again < 2; again++) await client.controllerUnpublishVolume({ volumeId, nodeId: 'n1' })
    await client.controllerUnpublishVolume({ volumeId: nowhere, nodeId: 'n1' })
    await client.deleteVolume({ volumeId })
    expect(await codeOf(client.controllerGetVolume({ volumeId }))).to.equal('NOT_FOUND')
  })

  it('are published to a node up to its limit, also when all are asked for at once', async () => {
    const { client } = driver
    expect((await client.nodeGetInfo()).maxVolumesPerNode).to.equal(2n)
    const made = await Promise.all(['m1', 'm2', 'm3'].map((name) => driver.create(name)))
    const publish = ({ volumeId }: { volumeId: string }) =>
      client.controllerPublishVolume({ volumeId, nodeId: 'n1', volumeCapability: mount })
    const codes = new Map(
      await Promise.all(made.map(async (volume) => [volume, await codeOf(publish(volume))] as const)),
    )
    for (const [volume, code] of codes) if (code === 'ABORTED') codes.set(volume, await codeOf(publish(volume)))
    expect([...codes.values()].filter((code) => code === 'RESOURCE_EXHAUSTED')).to.have.length(1)
    for (const { volumeId } of made) await client.controllerUnpublishVolume({ volumeId })
  })

  it('grow, and do not shrink', async () => {
    const { client } = driver
    const { volumeId } = await driver.create('growing', { capacityRange: { requiredBytes: mib } })
    const grow = (requiredBytes: bigint, limitBytes?: bigint) =>
      client.controllerExpandVolume({
        volumeId,
        capacityRange: { requiredBytes, ...(limitBytes !== undefined && { limitBytes }) },
      })
    expect(await grow(3n * mib)).to.deep.equal({ capacityBytes: 3n * mib, nodeExpansionRequired: false })
    expect(await grow(2n * mib)).to.deep.include({ capacityBytes: 3n * mib })
    expect(await codeOf(grow(mib, 2n * mib))).to.equal('OUT_OF_RANGE')
    expect(await codeOf(grow(1n << 62n))).to.equal('OUT_OF_RANGE')
    const volumePath = await driver.publish(volumeId, 'growing')
    const onNode = (requiredBytes: bigint) =>
      client.nodeExpandVolume({ volumeId, volumePath, capacityRange: { requiredBytes } })
    expect(await onNode(3n * mib)).to.deep.equal({ capacityBytes: 3n * mib })
    expect(await codeOf(onNode(4n * mib))).to.equal('OUT_OF_RANGE')
    const elsewhere = client.nodeExpandVolume({ volumeId, volumePath: driver.path('elsewhere') })
    expect(await codeOf(elsewhere)).to.equal('NOT_FOUND')
    await driver.unpublish(volumeId, volumePath)
  })

  it('are opened to others by a parameter that can be changed, and by no other', async () => {
    const { client } = driver
    const { volumeId } = await driver.create('modified', { mutableParameters: { mode: '0750' } })
    const modeOf = async () => (await stat(driver.path('state', 'volumes', volumeId, 'data'))).mode & 0o7777
    expect(await modeOf()).to.equal(0o750)
    await client.controllerModifyVolume({ volumeId, mutableParameters: { mode: '2770' } })
    expect(await modeOf()).to.equal(0o2770)
    for (const mutableParameters of [{ mode: '999' }, { mode: '0700', colour: 'red' }]) {
      const modify = client.controllerModifyVolume({ volumeId, mutableParameters })
      expect(await codeOf(modify)).to.equal('INVALID_ARGUMENT')
    }
    expect(await modeOf()).to.equal(0o2770)
    const absent = client.controllerModifyVolume({ volumeId: nowhere, mutableParameters: { mode: '0700' } })
    expect(await codeOf(absent)).to.equal('NOT_FOUND')
  })

  it('have one path for a single writer, and several for many', async () => {
    const [single, multi] = [
      { kind: 'mount', accessMode: 'SINGLE_NODE_SINGLE_WRITER' },
      { kind: 'mount', accessMode: 'SINGLE_NODE_MULTI_WRITER' },
    ] as const
    const alone = await driver.create('alone', { volumeCapabilities: [single] })
    const path = await driver.publish(alone.volumeId, 'alone-a', single)
    expect(await driver.publish(alone.volumeId, 'alone-a', single)).to.equal(path)
    expect(await codeOf(driver.publish(alone.volumeId, 'alone-b', single))).to.equal('FAILED_PRECONDITION')
    await driver.unpublish(alone.volumeId, path)

    const shared = await driver.create('shared', { volumeCapabilities: [multi] })
    const paths = [
      await driver.publish(shared.volumeId, 'shared-a', multi),
      await driver.publish(shared.volumeId, 'shared-b', multi),
    ]
    await writeFile(`${paths[0]}/file`, 'both')
    expect(await readFile(`${paths[1]}/file`, 'utf8')).to.equal('both')
    await driver.client.nodeUnpublishVolume({ volumeId: shared.volumeId, targetPath: paths[0] ?? '' })
    await driver.unpublish(shared.volumeId, paths[1] ?? '')
  })

  it('refuse paths that lead elsewhere than they say', async () => {
    const { volumeId } = await driver.create('paths')
    const stagingTargetPath = await driver.stage(volumeId)
    for (const targetPath of ['relative/path', driver.path('a') + '/../b']) {
      const publish = driver.client.call('NodePublishVolume', {
        volume_id: volumeId,
        staging_target_path: stagingTargetPath,
        target_path: targetPath,
        volume_capability: { mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } },
      })
      expect(await codeOf(publish), targetPath).to.equal('INVALID_ARGUMENT')
    }
    await driver.client.nodeUnstageVolume({ volumeId, stagingTargetPath })
  })

  it('are counted in bytes and in inodes', async () => {
    const { volumeId } = await driver.create('counted')
    const volumePath = await driver.publish(volumeId, 'counted')
    const { usage } = await driver.client.nodeGetVolumeStats({ volumeId, volumePath })
    expect(usage.map(({ unit }) => unit)).to.deep.equal(['BYTES', 'INODES'])
    await driver.unpublish(volumeId, volumePath)
  })

  it('are read-only on the node where the controller or the mode of access says so', async function () {
    needsMounts(this)
    const { client } = driver
    const readers = { kind: 'mount', accessMode: 'SINGLE_NODE_READER_ONLY' } as const
    const { volumeId } = await driver.create('readonly')
    const request = { volumeId, nodeId: 'n1', volumeCapability: mount, readonly: true }
    const { publishContext } = await client.controllerPublishVolume(request)
    const stagingTargetPath = await driver.stage(volumeId)
    const publish = { volumeId, stagingTargetPath, volumeCapability: mount }
    await client.nodePublishVolume({ ...publish, publishContext, targetPath: driver.path('ro-a') })
    await client.nodePublishVolume({ ...publish, volumeCapability: readers, targetPath: driver.path('ro-b') })
    for (const name of ['ro-a', 'ro-b']) {
      const failure: unknown = await writeFile(driver.path(name, 'file'), '').catch((error: unknown) => error)
      expect(failure).to.include({ code: 'EROFS' })
      await client.nodeUnpublishVolume({ volumeId, targetPath: driver.path(name) })
    }
    await client.nodeUnstageVolume({ volumeId, stagingTargetPath })
    await client.controllerUnpublishVolume({ volumeId })
  })

  it('are mounted with the flags and given to the group that are asked for', async function () {
    needsMounts(this)
    const capability = { ...mount, mountFlags: ['noexec'], volumeMountGroup: '54321' }
    const { volumeId } = await driver.create('flagged')
    const data = driver.path('state', 'volumes', volumeId, 'data')
    await writeFile(`${data}/file`, '', { mode: 0o600 })
    const path = await driver.publish(volumeId, 'flagged', capability)
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8')
    expect(mountinfo.split('\n').find((line) => line.includes(` ${path} `))).to.contain('noexec')
    expect(await stat(`${path}/file`)).to.include({ gid: 54321, mode: 0o100660 })
    expect((await stat(path)).mode & 0o7777).to.equal(0o2770)
    expect(await codeOf(driver.publish(volumeId, 'flagged', mount))).to.equal('ALREADY_EXISTS')
    await driver.unpublish(volumeId, path)
    const nobody = { ...mount, volumeMountGroup: 'no-such-group' }
    expect(await codeOf(driver.stage(volumeId, nobody))).to.equal('INVALID_ARGUMENT')
  })

  it('leave nothing once they are deleted', async () => {
    for await (const { volume } of driver.client.allVolumes()) {
      await driver.client.deleteVolume({ volumeId: volume.volumeId })
    }
    expect(await readdir(driver.path('state', 'volumes'))).to.deep.equal([])
    expect(await driver.mounts()).to.deep.equal([])
  })
})

describe('the hostpath driver in directory mode', () => {
  it('refuses what links cannot do', async () => {
    const driver = await HostpathDriver.start([], noMounts)
    try {
      const { volumeId } = await driver.create('linked')
      expect(await codeOf(driver.publish(volumeId, 'a', mount, true))).to.equal('INVALID_ARGUMENT')
      await driver.client.nodeUnstageVolume({ volumeId, stagingTargetPath: driver.path(`staging-${volumeId}`) })
      const flagged = { ...mount, mountFlags: ['noexec'] }
      expect(await codeOf(driver.publish(volumeId, 'a', flagged))).to.equal('INVALID_ARGUMENT')
    } finally {
      await driver.end()
    }
  })
})
