import { readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { all } from '../lib/csi/client-support.js'
import { codeOf, HostpathDriver, mib } from './hostpath-fixture.js'

const nobody = `snapshot-${'0'.repeat(32)}`

describe('the snapshots of the hostpath driver', () => {
  let driver: HostpathDriver
  let volumeId: string
  before(async () => {
    driver = await HostpathDriver.start()
    volumeId = (await driver.create('source', { capacityRange: { requiredBytes: mib } })).volumeId
    await writeFile(dataOf(volumeId), 'at first', { mode: 0o640 })
    await symlink('/nowhere/at/all', driver.path('state', 'volumes', volumeId, 'data', 'link'))
  })
  after(() => driver.end())

  const dataOf = (id: string) => driver.path('state', 'volumes', id, 'data', 'file')
  const snapshotOf = async (name: string, sourceVolumeId = volumeId) =>
    (await driver.client.createSnapshot({ name, sourceVolumeId })).snapshot
  const from = (name: string, snapshotId: string, request = {}) =>
    driver.create(name, { volumeContentSource: { kind: 'snapshot', snapshotId }, ...request })

  it('keep what was in the volume, for as many volumes as are made from them', async () => {
    const snapshot = await snapshotOf('s1')
    expect(snapshot).to.deep.include({ sourceVolumeId: volumeId, sizeBytes: mib, readyToUse: true })
    await writeFile(dataOf(volumeId), 'changed')
    expect(await snapshotOf('s1'), 'asked for again').to.deep.equal(snapshot)
    const made = await from('restored', snapshot.snapshotId)
    expect(made).to.deep.include({
      capacityBytes: mib,
      contentSource: { kind: 'snapshot', snapshotId: snapshot.snapshotId },
    })
    expect(await readFile(dataOf(made.volumeId), 'utf8')).to.equal('at first')
    expect((await stat(dataOf(made.volumeId))).mode & 0o777).to.equal(0o640)
    const names = await readdir(driver.path('state', 'volumes', made.volumeId, 'data'))
    expect(names).to.have.members(['file', 'link'])
    await writeFile(dataOf(made.volumeId), 'of its own')
    const second = await from('restored too', snapshot.snapshotId, { capacityRange: { requiredBytes: 2n * mib } })
    expect(second.capacityBytes).to.equal(2n * mib)
    expect(await readFile(dataOf(second.volumeId), 'utf8')).to.equal('at first')
    const tooSmall = from('too small', snapshot.snapshotId, { capacityRange: { limitBytes: mib / 2n } })
    expect(await codeOf(tooSmall)).to.equal('OUT_OF_RANGE')
  })

  it('outlive their volume, and are not needed by the volumes made from them', async () => {
    const { volumeId: source } = await driver.create('short-lived')
    await writeFile(dataOf(source), 'still here')
    const { snapshotId } = await snapshotOf('s-long', source)
    await driver.client.deleteVolume({ volumeId: source })
    const made = await from('long-lived', snapshotId)
    for (let again = 0; again < 2; again++) await driver.client.deleteSnapshot({ snapshotId })
    expect(await readFile(dataOf(made.volumeId), 'utf8')).to.equal('still here')
    expect(await from('long-lived', snapshotId), 'asked for again').to.deep.equal(made)
  })

  it('have one volume for one name', async () => {
    await snapshotOf('taken')
    const { volumeId: other } = await driver.create('other')
    expect(await codeOf(snapshotOf('taken', other))).to.equal('ALREADY_EXISTS')
    expect(await codeOf(snapshotOf('of nothing', `volume-${'0'.repeat(32)}`))).to.equal('NOT_FOUND')
    expect(await codeOf(from('from nothing', nobody))).to.equal('NOT_FOUND')
    expect(await codeOf(driver.client.getSnapshot({ snapshotId: '../../volumes' }))).to.equal('NOT_FOUND')
  })

  it('are listed in pages, by volume and by id', async () => {
    const { volumeId: source } = await driver.create('listed')
    const ids = []
    for (const name of ['l1', 'l2', 'l3']) ids.push((await snapshotOf(name, source)).snapshotId)
    const listed = await all(driver.client.allSnapshots({ sourceVolumeId: source, maxEntries: 2 }))
    expect(listed.map(({ snapshot }) => snapshot.snapshotId)).to.have.members(ids)
    const [snapshotId = ''] = ids
    const { entries } = await driver.client.listSnapshots({ snapshotId })
    expect(entries).to.deep.equal([await driver.client.getSnapshot({ snapshotId })])
    expect((await driver.client.listSnapshots({ snapshotId: nobody })).entries).to.deep.equal([])
    const stale = driver.client.listSnapshots({ startingToken: 'nonsense' })
    expect(await codeOf(stale)).to.equal('ABORTED')
  })

  it('are not taken where a volume cannot be', async () => {
    const taken = driver.client.createSnapshot({
      name: 'elsewhere',
      sourceVolumeId: volumeId,
      accessibilityRequirements: { requisite: [{ zone: 'b' }] },
    })
    expect(await codeOf(taken)).to.equal('RESOURCE_EXHAUSTED')
  })

  it('stand beside clones, which are volumes of their own', async () => {
    await writeFile(dataOf(volumeId), 'to be cloned')
    const clone = await driver.create('clone', { volumeContentSource: { kind: 'volume', volumeId } })
    expect(clone.contentSource).to.deep.equal({ kind: 'volume', volumeId })
    await writeFile(dataOf(volumeId), 'changed')
    expect(await readFile(dataOf(clone.volumeId), 'utf8')).to.equal('to be cloned')
    const absent = { kind: 'volume', volumeId: `volume-${'0'.repeat(32)}` } as const
    expect(await codeOf(driver.create('clone of nothing', { volumeContentSource: absent }))).to.equal('NOT_FOUND')
  })

  describe('of a group', () => {
    let sources: string[]
    before(async () => {
      sources = []
      for (const name of ['g1', 'g2']) sources.push((await driver.create(name)).volumeId)
      for (const id of sources) await writeFile(dataOf(id), `of ${id}`)
    })
    const groupOf = async (name: string, sourceVolumeIds = sources) =>
      (await driver.client.createVolumeGroupSnapshot({ name, sourceVolumeIds })).groupSnapshot

    it('are made, told of and deleted together', async () => {
      const { client } = driver
      const group = await groupOf('all')
      const { groupSnapshotId } = group
      expect(await groupOf('all', [...sources].reverse()), 'asked for again').to.deep.equal(group)
      expect(group.snapshots.map(({ sourceVolumeId }) => sourceVolumeId)).to.have.members(sources)
      for (const member of group.snapshots) {
        expect(member.groupSnapshotId).to.equal(groupSnapshotId)
        const { volumeId: id } = await from(`from ${member.snapshotId}`, member.snapshotId)
        expect(await readFile(dataOf(id), 'utf8')).to.equal(`of ${member.sourceVolumeId}`)
      }
      const snapshotIds = group.snapshots.map(({ snapshotId }) => snapshotId)
      const found = await client.getVolumeGroupSnapshot({ groupSnapshotId, snapshotIds })
      expect(found.groupSnapshot).to.deep.equal(group)

      const [snapshotId = ''] = snapshotIds
      expect(await codeOf(client.deleteSnapshot({ snapshotId }))).to.equal('FAILED_PRECONDITION')
      const part = { groupSnapshotId, snapshotIds: [snapshotId] }
      expect(await codeOf(client.getVolumeGroupSnapshot(part))).to.equal('INVALID_ARGUMENT')
      expect(await codeOf(client.deleteVolumeGroupSnapshot(part))).to.equal('INVALID_ARGUMENT')
      for (let again = 0; again < 2; again++) {
        await client.deleteVolumeGroupSnapshot({ groupSnapshotId, snapshotIds })
      }
      expect(await codeOf(client.getSnapshot({ snapshotId }))).to.equal('NOT_FOUND')
      expect(await codeOf(client.getVolumeGroupSnapshot({ groupSnapshotId, snapshotIds }))).to.equal('NOT_FOUND')
    })

    it('are all there or none of them', async () => {
      const before = await all(driver.client.allSnapshots())
      const absent = `volume-${'0'.repeat(32)}`
      expect(await codeOf(groupOf('partly', [...sources, absent]))).to.equal('NOT_FOUND')
      expect(await all(driver.client.allSnapshots())).to.deep.equal(before)
      await groupOf('whole')
      expect(await codeOf(groupOf('whole', sources.slice(1)))).to.equal('ALREADY_EXISTS')
    })
  })
})
