import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { volumeFiles } from '../../../lib/volume/files.js'
import { mountsAt } from '../../../lib/volume/mount-table.js'
import { describeWithFuse, hungMount, staleMount } from '../../support/dead-mounts.js'
import { needs } from '../../support/needs.js'
import { asNobody, Scratch } from '../../support/sockets.js'
import { failureOf } from './support.js'

const files = volumeFiles()
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)

describe('the files of volumes', () => {
  let scratch: Scratch
  let root: string
  beforeEach(() => {
    scratch = new Scratch()
    root = scratch.file('root')
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('are directories for their owner alone, all the way, whatever the umask', async () => {
    const umask = process.umask(0)
    try {
      await files.makeDirectory(root, `${root}/staging/default/v1/x`)
    } finally {
      process.umask(umask)
    }
    for (const part of ['', '/staging', '/staging/default', '/staging/default/v1', '/staging/default/v1/x'])
      expect(mode(root + part), part).to.equal('700')
  })

  it('may be made twice, by many at once, and stay as they are where they are there', async () => {
    const path = `${root}/staging/v1/x`
    await Promise.all(Array.from({ length: 10 }, () => files.makeDirectory(root, path)))
    writeFileSync(`${path}/kept`, '')
    await files.makeDirectory(root, path)
    expect(readdirSync(path)).to.deep.equal(['kept'])
  })

  it('have a place without symbolic links, of which only the directory above is made', async () => {
    mkdirSync(scratch.file('disk'))
    symlinkSync('disk', root)
    const place = await files.placeOf(root, `${root}/per-alloc/a/x`)
    expect(place).to.equal(`${realpathSync(scratch.file('disk'))}/per-alloc/a/x`)
    expect(readdirSync(`${root}/per-alloc/a`)).to.deep.equal([])
    expect(await files.placeOf(root, `${root}/per-alloc/a/x`)).to.equal(place)
    expect(await files.placeOf(`${root}/`, `${root}/per-alloc/b/x`)).to.equal(place.replace('/a/', '/b/'))
    expect(await files.placeOf(root, `${root}/x`)).to.equal(`${realpathSync(root)}/x`)
  })

  it('may be led to another place below the root', async () => {
    mkdirSync(`${root}/elsewhere`, { recursive: true })
    symlinkSync('elsewhere', `${root}/staging`)
    expect(await files.placeOf(root, `${root}/staging/v1/x`)).to.equal(`${realpathSync(root)}/elsewhere/v1/x`)
  })

  it('are refused where a link leads out of the root, and nothing is made there', async () => {
    const outside = scratch.file('root-outside')
    mkdirSync(outside)
    mkdirSync(root)
    symlinkSync(outside, `${root}/staging`)
    for (const path of [`${root}/staging/x`, `${root}/staging/v1/x`])
      for (const ask of [files.placeOf, files.makeDirectory]) {
        const { message, details } = await failureOf(ask(root, path), 'ERR_MOUNT')
        expect(message).to.contain(outside).and.contain(`which is not below ${root}`)
        expect(details).to.deep.equal({ path })
      }
    expect(readdirSync(outside)).to.deep.equal([])
  })

  it('are refused where a link leads nowhere, or a file is in the way', async () => {
    mkdirSync(root)
    symlinkSync(scratch.file('nowhere'), `${root}/staging`)
    writeFileSync(`${root}/per-alloc`, '')
    for (const path of [`${root}/staging/v1/x`, `${root}/per-alloc/a/x`]) {
      const { details } = await failureOf(files.makeDirectory(root, path), 'ERR_MOUNT')
      expect(details).to.deep.equal({ path })
    }
    expect(existsSync(scratch.file('nowhere'))).to.equal(false)
  })

  it('are refused where this process may not write, and that is said', async () => {
    mkdirSync(root, { mode: 0o500 })
    await asNobody(async () => {
      const { message } = await failureOf(volumeFiles().makeDirectory(root, `${root}/staging/v1/x`), 'ERR_MOUNT')
      expect(message).to.contain('EACCES')
    })
  })

  it('are made by whoever runs the host, who need not be root', async () => {
    mkdirSync(root)
    execFileSync('chmod', ['777', root])
    await asNobody(async () => {
      const own = volumeFiles()
      await own.makeDirectory(root, `${root}/staging/v1/x`)
      expect(mode(`${root}/staging/v1/x`)).to.equal('700')
      own.removeIfEmpty(`${root}/staging/v1/x`)
      expect(readdirSync(`${root}/staging/v1`)).to.deep.equal([])
    })
  })

  it('are made anew where the root was removed meanwhile', async () => {
    await files.makeDirectory(root, `${root}/staging/v1/x`)
    rmSync(root, { recursive: true })
    await files.makeDirectory(root, `${root}/staging/v1/x`)
    expect(readdirSync(`${root}/staging/v1`)).to.deep.equal(['x'])
  })

  it('are removed where they are empty, and else stay, whatever they are', () => {
    mkdirSync(`${root}/empty`, { recursive: true })
    mkdirSync(`${root}/full`)
    writeFileSync(`${root}/full/file`, '')
    symlinkSync('full', `${root}/link`)
    for (const name of ['empty', 'full', 'full/file', 'link', 'missing', 'missing/below'])
      files.removeIfEmpty(`${root}/${name}`)
    expect(readdirSync(root).sort()).to.deep.equal(['full', 'link'])
    expect(readdirSync(`${root}/full`)).to.deep.equal(['file'])
  })

  it('tell a symbolic link from all else, also one that leads nowhere', async () => {
    mkdirSync(`${root}/directory`, { recursive: true })
    writeFileSync(`${root}/file`, '')
    symlinkSync('directory', `${root}/link`)
    symlinkSync('nowhere', `${root}/dangling`)
    const links = []
    for (const name of ['directory', 'file', 'link', 'dangling', 'missing', 'missing/below'])
      if (await files.isLink(`${root}/${name}`)) links.push(name)
    expect(links).to.deep.equal(['link', 'dangling'])
    expect((await failureOf(files.isLink(`${root}/file/below`))).code).to.equal('ERR_MOUNT')
  })

  it('are expected to be mounts where this process may mount', async () => {
    if (process.platform !== 'linux') {
      expect([files.expectsMounts, await files.mounts()]).to.deep.equal([false, undefined])
      return
    }
    expect(mountsAt((await files.mounts())!, '/')).to.have.length.at.least(1)
    const script = `
      const { volumeFiles } = await import(${JSON.stringify(new URL('../../../lib/volume/files.ts', import.meta.url).href)})
      console.log(volumeFiles().expectsMounts)
    `
    const words = ['--import', 'tsx/esm', '--input-type=module', '--eval', script]
    const asRoot = process.getuid?.() === 0
    const [command, ...rest] = asRoot
      ? ['setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin', process.execPath, ...words]
      : [process.execPath, ...words]
    expect(execFileSync(command, rest, { encoding: 'utf8' }).trim()).to.equal('false')
  })
})

describe('the files of volumes, with mounts', () => {
  let scratch: Scratch
  before(function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
  })
  beforeEach(() => {
    scratch = new Scratch()
  })
  afterEach(() => scratch[Symbol.dispose]())

  it('are not removed where something is mounted, empty or not', async () => {
    const path = scratch.file('m')
    mkdirSync(path)
    execFileSync('mount', ['-t', 'tmpfs', 'plugstream-test', path])
    try {
      files.removeIfEmpty(path)
      expect(mountsAt((await files.mounts())!, realpathSync(scratch.path) + '/m')).to.have.length(1)
    } finally {
      execFileSync('umount', [path])
    }
    files.removeIfEmpty(path)
    expect(existsSync(path)).to.equal(false)
  })

  it('are told with what was mounted before they were asked for, also while others ask', async () => {
    const path = scratch.file('m')
    mkdirSync(path)
    const early = files.mounts()
    execFileSync('mount', ['-t', 'tmpfs', 'plugstream-test', path])
    try {
      const late = await files.mounts()
      await early
      expect(mountsAt(late!, realpathSync(scratch.path) + '/m')).to.have.length(1)
    } finally {
      execFileSync('umount', [path])
    }
    expect(mountsAt((await files.mounts())!, realpathSync(scratch.path) + '/m')).to.deep.equal([])
  })
})

describeWithFuse('the files of volumes on a dead file system', () => {
  for (const [what, dead] of [
    ['hung', hungMount],
    ['stale', staleMount],
  ] as const)
    it(`are made and removed at once at a mount that is ${what}, which is not touched`, async () => {
      using scratch = new Scratch()
      const root = scratch.path
      const path = `${root}/staging/v1/x`
      mkdirSync(path, { recursive: true })
      using _mount = dead(path)
      await files.makeDirectory(root, path)
      expect(await files.placeOf(root, path)).to.equal(`${realpathSync(root)}/staging/v1/x`)
      files.removeIfEmpty(path)
      files.removeIfEmpty(`${root}/staging/v1`)
      expect(mountsAt((await files.mounts())!, `${realpathSync(root)}/staging/v1/x`)).to.have.length(1)
    })
})
