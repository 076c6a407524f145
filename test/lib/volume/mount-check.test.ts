import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { MountCheck } from '../../../lib/volume/mount-check.js'
import type { Mount } from '../../../lib/volume/mount-table.js'
import type { VolumeFiles } from '../../../lib/volume/ports.js'
import { failureOf } from './support.js'

const path = '/v/per-alloc/a/x'

const mount = (id: number, at: string, over: Partial<Mount> = {}): Mount => ({
  id,
  parentId: 0,
  device: '0:1',
  root: '/',
  path: at,
  options: ['rw'],
  fsType: 'ext4',
  source: '/dev/sdb',
  superOptions: ['rw'],
  ...over,
})
const here = mount(1, path)

const check = (mounts: VolumeFiles['mounts'], expectsMounts = true): MountCheck =>
  new MountCheck({ mounts, expectsMounts }, path)
const table =
  (...mounts: Mount[]) =>
  async (): Promise<Mount[]> =>
    mounts
const unseen = async (): Promise<undefined> => undefined
const restless = (): Promise<never> =>
  Promise.reject(new PlugstreamError('ERR_MOUNT', 'the mount table was different each time', { retryable: true }))

describe('a place for a mount', () => {
  it('is free where nothing is mounted at it, whatever is beside, above or below it', async () => {
    await check(table()).mustBeFree()
    await check(table(mount(1, '/v'), mount(2, `${path}y`), mount(3, `${path}/below`))).mustBeFree()
  })

  it('is refused where something is mounted from elsewhere, and that is said', async () => {
    const { message, details, retryable } = await failureOf(check(table(here)).mustBeFree(), 'ERR_MOUNT')
    expect(message).to.equal(`/dev/sdb (ext4) is mounted at ${path} from elsewhere`)
    expect({ details, retryable }).to.deep.equal({ details: { path }, retryable: false })
  })

  it('is refused also where this process may not mount: somebody has', async () => {
    await failureOf(check(table(here), false).mustBeFree(), 'ERR_MOUNT')
  })

  it('is refused by the name of the topmost', async () => {
    const over = mount(2, path, { parentId: 1, source: 'server:/export', fsType: 'nfs4' })
    const { message } = await failureOf(check(table(here, over)).mustBeFree(), 'ERR_MOUNT')
    expect(message).to.contain('server:/export (nfs4)')
  })
})

describe('a mount that the plugin says it made', () => {
  it('is found', async () => {
    await check(table(mount(5, '/v'), { ...here, parentId: 5 })).mustBeMounted(false)
  })

  it('is missed where there is none: OK without effect', async () => {
    for (const mounts of [table(), table(mount(1, '/v/per-alloc/a')), table(mount(1, `${path}/below`))]) {
      const { message, details } = await failureOf(check(mounts).mustBeMounted(false), 'ERR_MOUNT')
      expect(message).to.equal(`the plugin answered OK, and nothing is mounted at ${path}`)
      expect(details).to.deep.equal({ path })
    }
  })

  it('is read-only where that was asked for, for the mount alone or all of its file system', async () => {
    await check(table(mount(1, path, { options: ['ro'] }))).mustBeMounted(true)
    await check(table(mount(1, path, { superOptions: ['ro'] }))).mustBeMounted(true)
    const { message } = await failureOf(check(table(here)).mustBeMounted(true), 'ERR_MOUNT')
    expect(message).to.equal(`the plugin answered OK, and ${path} is not read-only`)
  })

  it('is read-only as its topmost is', async () => {
    const over = mount(2, path, { parentId: 1, options: ['ro'] })
    await check(table(here, over)).mustBeMounted(true)
    const under = [mount(1, path, { options: ['ro'] }), mount(2, path, { parentId: 1 })]
    await failureOf(check(table(...under)).mustBeMounted(true), 'ERR_MOUNT')
  })

  it('may be read-only where writing was asked for: some storage is', async () => {
    await check(table(mount(1, path, { options: ['ro'] }))).mustBeMounted(false)
  })

  it('is not expected where this process may not mount', async () => {
    await check(table(), false).mustBeMounted(true)
  })
})

describe('a mount that is to be gone', () => {
  it('is gone where nothing is at its place or below it', async () => {
    await check(table(mount(1, '/v'), mount(2, `${path}y`))).mustBeGone()
  })

  it('is not while it, or something below it, is there: that may pass', async () => {
    for (const left of [here, mount(2, `${path}/below`)]) {
      const { message, retryable } = await failureOf(check(table(left)).mustBeGone(), 'ERR_MOUNT')
      expect(message).to.equal(`the plugin answered OK, and something is still mounted at ${path}`)
      expect(retryable).to.equal(true)
    }
  })

  it('fails with what it is told to where it is still there, and only then', async () => {
    const otherwise = new PlugstreamError('ERR_CSI_RPC', 'NOT_FOUND')
    expect(await failureOf(check(table(here)).mustBeGone(otherwise))).to.equal(otherwise)
    await check(table()).mustBeGone(otherwise)
  })

  it('is looked for also where this process may not mount', async () => {
    await failureOf(check(table(here), false).mustBeGone(), 'ERR_MOUNT')
  })
})

describe('a mount table that says nothing', () => {
  const checks: ((check: MountCheck) => Promise<void>)[] = [
    (one) => one.mustBeFree(),
    (one) => one.mustBeMounted(true),
    (one) => one.mustBeGone(new Error('still there')),
  ]

  it('is held against nobody: where mounts cannot be seen, and where they change faster than they are read', async () => {
    for (const mounts of [unseen, restless]) for (const one of checks) await one(check(mounts))
  })

  it('is told where it is broken, since then nothing is known for good', async () => {
    const broken = new PlugstreamError('ERR_MOUNT', 'line 3 of the mount table is "x"')
    const other = new TypeError('no such thing')
    for (const one of checks) {
      expect(await failureOf(one(check(() => Promise.reject(broken))))).to.equal(broken)
      expect(await one(check(() => Promise.reject(other))).catch((thrown: unknown) => thrown)).to.equal(other)
    }
  })
})
