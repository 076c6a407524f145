import { execFileSync } from 'node:child_process'
import { mkdirSync, rmdirSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { PlugstreamError } from '../../../lib/errors.js'
import {
  isReadonly,
  mountsAt,
  mountsBelow,
  parseMountTable,
  readMountTable,
  readTwice,
  sameVolume,
  type Mount,
} from '../../../lib/volume/mount-table.js'
import { needs } from '../../support/needs.js'
import { Scratch } from '../../support/sockets.js'

/** Letters a table could be misread by. */
const odd = [
  ' ',
  '\t',
  '\n',
  '\r',
  '\u2028',
  '\\',
  '#',
  ',',
  '-',
  ':',
  '"',
  "'",
  '*',
  '0',
  '1',
  '3',
  '4',
  '7',
  'é',
  '日',
  '🚀',
]

const only = (line: string): Mount => parseMountTable(`${line}\n`)[0]!
const failure = async (work: () => unknown): Promise<PlugstreamError> => {
  try {
    await work()
  } catch (thrown) {
    return thrown as PlugstreamError
  }
  return expect.fail('it did not fail')
}

/** A table of nothing but what stands on what: `id parent path`. */
const table = (...lines: string[]): Mount[] =>
  parseMountTable(
    lines
      .map((line) => line.split(' '))
      .map(([id, parent, path]) => `${id} ${parent} 0:1 / ${path} rw - tmpfs tmpfs rw\n`)
      .join(''),
  )
const ids = (mounts: readonly Mount[]): number[] => mounts.map(({ id }) => id)

describe('a mount table', () => {
  it('is read field by field', () => {
    const line = '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue'
    expect(only(line)).to.deep.equal({
      id: 36,
      parentId: 35,
      device: '98:0',
      root: '/mnt1',
      path: '/mnt2',
      options: ['rw', 'noatime'],
      fsType: 'ext3',
      source: '/dev/root',
      superOptions: ['rw', 'errors=continue'],
    })
  })

  it('may have any number of optional fields', () => {
    for (const optional of ['', 'shared:1 ', 'shared:7 master:1 propagate_from:2 unbindable ', 'new:9 ']) {
      const { path, fsType, source } = only(`1 2 0:3 / /a rw ${optional}- tmpfs none rw`)
      expect([path, fsType, source]).to.deep.equal(['/a', 'tmpfs', 'none'])
    }
  })

  it('has the paths, sources and options behind its escapes', () => {
    const mount = only(
      String.raw`61 28 0:52 /a\040b /x\040y\011z\012n\134040\043 rw - fuse.s\040fs my\040host:/a\134b rw,subtype=a\040b,name=a\054b`,
    )
    expect(mount.root).to.equal('/a b')
    expect(mount.path).to.equal('/x y\tz\nn\\040#')
    expect(mount.fsType).to.equal('fuse.s fs')
    expect(mount.source).to.equal('my host:/a\\b')
    expect(mount.superOptions).to.deep.equal(['rw', 'subtype=a b', 'name=a,b'])
  })

  it('has letters of several bytes, escaped or not, and lines that only the kernel ends', () => {
    const path = '/日本\r\u2028\u0085\v\f\u00a0é🚀'
    expect(only(`1 2 0:3 / ${path} rw - tmpfs none rw`).path).to.equal(path)
    expect(only(String.raw`1 2 0:3 / /\303\251\040é rw - tmpfs none rw`).path).to.equal('/é é')
  })

  it('is not broken by bytes that are no UTF-8', () => {
    const line = Buffer.concat([
      Buffer.from('1 2 0:3 / /a'),
      Buffer.from([0xff, 0xc3]),
      Buffer.from(' rw - tmpfs none rw'),
    ])
    expect(only(line.toString('utf8')).path).to.equal('/a\ufffd\ufffd')
    expect(only(String.raw`1 2 0:3 / /a\377 rw - tmpfs none rw`).path).to.equal('/a\ufffd')
  })

  it('may name no source and no options', () => {
    const { source, superOptions } = only('1 2 0:3 / /a rw - tmpfs  rw')
    expect({ source, superOptions }).to.deep.equal({ source: '', superOptions: ['rw'] })
    expect(only('1 2 0:3 / /a rw - tmpfs none').superOptions).to.deep.equal([])
  })

  it('is read as kernels write it for what volumes are made of', () => {
    const mounts = parseMountTable(
      String.raw`22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
25 22 0:22 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
31 22 0:29 / /proc/sys/fs/binfmt_misc rw,relatime shared:12 - autofs systemd-1 rw,fd=29,pgrp=1,timeout=0,minproto=5,maxproto=5,direct,pipe_ino=1543
90 22 0:45 / /run/docker/overlay rw,relatime - overlay overlay rw,lowerdir=/l/A:/l/B\054C,upperdir=/u,workdir=/w
91 22 0:46 / /mnt/nfs rw,relatime shared:50 - nfs4 [fd00::1]:/export/a\040b rw,vers=4.2,hard,proto=tcp6,addr=fd00::1
92 22 0:47 / /mnt/s3 rw,nosuid,nodev,relatime shared:51 - fuse.mountpoint-s3 mountpoint-s3 rw,user_id=0,group_id=0,allow_other
93 22 0:48 /@home /home rw,relatime shared:52 - btrfs /dev/vdb rw,ssd,subvolid=257,subvol=/@home
94 22 0:48 /@srv /srv rw,relatime shared:53 - btrfs /dev/vdb rw,ssd,subvolid=258,subvol=/@srv
95 22 254:1 /var/lib/vol /state/vol ro,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
96 22 0:5 /vdc /state/block rw,nosuid shared:2 - devtmpfs udev rw,size=4k,mode=755
97 22 254:1 /var/lib/gone//deleted /state/gone rw,relatime shared:1 - ext4 /dev/vda1 rw
98 22 0:4 net:[4026531992] /run/netns/x rw shared:60 - nsfs nsfs rw
99 22 0:49 /../.. /cg rw - cgroup2 cgroup rw
`,
    )
    expect(mounts.map(({ path }) => path)).to.deep.equal([
      '/',
      '/sys/fs/cgroup',
      '/proc/sys/fs/binfmt_misc',
      '/run/docker/overlay',
      '/mnt/nfs',
      '/mnt/s3',
      '/home',
      '/srv',
      '/state/vol',
      '/state/block',
      '/state/gone',
      '/run/netns/x',
      '/cg',
    ])
    const at = (path: string): Mount => mountsAt(mounts, path)[0]!
    expect(at('/run/docker/overlay').superOptions).to.include('lowerdir=/l/A:/l/B,C')
    expect(at('/mnt/nfs')).to.include({ fsType: 'nfs4', source: '[fd00::1]:/export/a b' })
    expect(at('/mnt/s3').fsType).to.equal('fuse.mountpoint-s3')
    expect(at('/state/gone').root).to.equal('/var/lib/gone//deleted')
    expect(sameVolume(at('/home'), at('/srv'))).to.be.false
    expect(isReadonly(at('/state/vol'))).to.be.true
    expect(isReadonly(at('/'))).to.be.false
  })

  it('says what cannot be written, as a file system cannot that the kernel has stopped after an error', () => {
    expect(isReadonly(only('1 2 8:1 / /a ro - ext4 /dev/sda1 rw'))).to.be.true
    expect(isReadonly(only('1 2 8:1 / /a rw - ext4 /dev/sda1 ro,errors=remount-ro'))).to.be.true
    expect(isReadonly(only('1 2 8:1 / /a rw - ext4 /dev/sda1 rw,errors=remount-ro'))).to.be.false
  })

  it('is refused where a line is none of it, and that line is shown', async () => {
    for (const line of [
      '',
      'x',
      '1 2 0:3 / /a rw tmpfs none rw',
      '1 2 0:3 / /a rw -',
      '1 2 0:3 / /a rw - tmpfs',
      'a 2 0:3 / /a rw - t s rw',
    ]) {
      const { code, message } = await failure(() => parseMountTable(`1 2 0:3 / /a rw - tmpfs none rw\n${line}\n`))
      expect(code).to.equal('ERR_MOUNT')
      expect(message).to.contain('line 2').and.contain(JSON.stringify(line))
    }
    expect(parseMountTable('')).to.deep.equal([])
  })

  it('says again what the kernel wrote, whatever the names', () => {
    const escape = (text: string): string =>
      text.replace(/[ \t\n\\#]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`)
    const name = fc.string({
      unit: fc.oneof(fc.constantFrom(...odd), fc.string({ unit: 'grapheme', maxLength: 1 })),
    })
    const path = name.map((text) => `/${text}`)
    const options = fc.array(name.map((text) => `o${text.replaceAll(',', '')}`))
    const mount = fc.record({
      id: fc.nat(),
      parentId: fc.nat(),
      device: fc.tuple(fc.nat(4095), fc.nat(1048575)).map(([major, minor]) => `${major}:${minor}`),
      root: path,
      path,
      options,
      fsType: name.map((text) => `f${text}`),
      source: name,
      superOptions: options,
    })
    fc.assert(
      fc.property(
        fc.array(mount, { maxLength: 5 }),
        fc.array(fc.constantFrom('shared:1', 'master:2', 'unbindable')),
        (mounts, optional) => {
          const lines = mounts.map((one) => {
            const head = [
              one.id,
              one.parentId,
              one.device,
              escape(one.root),
              escape(one.path),
              one.options.map(escape).join(','),
            ]
            return [
              ...head,
              ...optional,
              '-',
              escape(one.fsType),
              escape(one.source),
              one.superOptions.map(escape).join(','),
            ].join(' ')
          })
          expect(parseMountTable(lines.map((line) => `${line}\n`).join(''))).to.deep.equal(mounts)
        },
      ),
      { seed: 3 },
    )
  })
})

describe('what is mounted at a path', () => {
  it('comes in the order of the stack, not of the table', () => {
    const mounts = table('4 3 /a', '1 0 /', '3 2 /a', '2 1 /a', '5 1 /ab')
    expect(ids(mountsAt(mounts, '/a'))).to.deep.equal([2, 3, 4])
    expect(ids(mountsAt(mounts, '/a/'))).to.deep.equal([2, 3, 4])
    expect(ids(mountsAt(mounts, '/'))).to.deep.equal([1])
    expect(mountsAt(mounts, '/a/b')).to.deep.equal([])
    expect(mountsAt(mounts, '/b')).to.deep.equal([])
  })

  it('is not what lies hidden below a directory that was mounted over', () => {
    const mounts = table('1 0 /', '2 1 /a/b', '3 1 /a')
    expect(mountsAt(mounts, '/a/b')).to.deep.equal([])
    expect(ids(mountsAt([...mounts, ...table('4 3 /a/b')], '/a/b'))).to.deep.equal([4])
  })

  it('is found where the root is no mount of its own, or stands on itself', () => {
    expect(ids(mountsAt(table('7 99 /a', '8 7 /a/b', '9 99 /c'), '/a/b'))).to.deep.equal([8])
    expect(ids(mountsAt(table('1 1 /', '2 1 /a'), '/a'))).to.deep.equal([2])
  })

  it('comes to an end in a table that leads in a circle', () => {
    const mounts = table('1 0 /', '2 1 /a', '2 2 /a', '3 4 /a', '4 3 /a')
    expect(ids(mountsAt(mounts, '/a'))).to.include(2)
    expect(ids(mountsBelow(mounts, '/'))).to.have.members([2, 2, 3, 4])
  })
})

describe('what is mounted below a path', () => {
  it('is everything under it and nothing at it or beside it, each after what it stands on', () => {
    const mounts = table('6 4 /a/b/c', '4 3 /a/b', '1 0 /', '2 1 /a', '3 2 /a/b', '5 1 /ab', '7 1 /a/hidden')
    expect(ids(mountsBelow(mounts, '/a'))).to.deep.equal([7, 3, 4, 6])
    expect(ids(mountsBelow(mounts, '/a/'))).to.deep.equal([7, 3, 4, 6])
    expect(ids(mountsBelow(mounts, '/'))).to.have.members([2, 3, 4, 5, 6, 7])
    expect(mountsBelow(mounts, '/a/b/c')).to.deep.equal([])
  })
})

describe('reading the mount table', () => {
  const reading = (...texts: string[]): { count: number; read: () => Promise<string> } => {
    const reader = { count: 0, read: async () => texts[reader.count++] ?? `changed ${reader.count}` }
    return reader
  }

  it('reads again until nothing has changed in between', async () => {
    const reader = reading('torn', 'a', 'b', 'b', 'c')
    expect(await readTwice(reader.read)).to.equal('b')
    expect(
      await readTwice(
        () => Promise.resolve('whole'),
        () => true,
      ),
    ).to.equal('whole')
    expect(reader.count).to.equal(4)
  })

  it('gives up on a table that never stands still, which may pass', async () => {
    const reader = reading()
    expect(await failure(() => readTwice(reader.read))).to.deep.include({ code: 'ERR_MOUNT', retryable: true })
    expect(reader.count).to.equal(10)
  })

  it('says why it cannot be read', async () => {
    const cause = new Error('ENOENT: no /proc here')
    const error = await failure(() => readTwice(() => Promise.reject(cause)))
    expect(error).to.deep.include({ code: 'ERR_MOUNT', cause })
  })

  it('is for Linux only, and says so', async () => {
    const { platform } = process
    Object.defineProperty(process, 'platform', { value: 'darwin' })
    try {
      const { code, message } = await failure(() => readMountTable())
      expect({ code, message }).to.deep.equal({ code: 'ERR_MOUNT', message: 'mount tables are read on Linux only' })
    } finally {
      Object.defineProperty(process, 'platform', { value: platform })
    }
  })
})

describe('the mount table of this machine', () => {
  const mount = (...words: string[]): void => void execFileSync('mount', words, { stdio: 'pipe' })
  const umount = (...words: string[]): void => void execFileSync('umount', words, { stdio: 'pipe' })
  let scratch: Scratch
  const make = (name: string): string => {
    mkdirSync(scratch.file(name), { recursive: true })
    return scratch.file(name)
  }
  const at = async (path: string): Promise<Mount[]> => mountsAt(await readMountTable(), path)

  before(function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
  })
  beforeEach(() => {
    scratch = new Scratch()
    mount('-t', 'tmpfs', 'plugstream-test', scratch.path)
    mount('--make-private', scratch.path)
  })
  afterEach(() => {
    umount('--lazy', scratch.path)
    scratch[Symbol.dispose]()
  })

  it('has a mount, and no longer when it is unmounted', async () => {
    expect((await at(scratch.path))[0]).to.include({ fsType: 'tmpfs', source: 'plugstream-test', root: '/' })
    const target = make('target')
    expect(await at(target)).to.deep.equal([])
    mount('--bind', make('source'), target)
    expect((await at(target))[0]).to.include({ path: target, root: '/source' })
    umount(target)
    expect(await at(target)).to.deep.equal([])
  })

  it('has mounts at paths of any name', async () => {
    const names = [
      'a b',
      'line\nline',
      'tab\there',
      'back\\slash',
      '\\040',
      '#hash',
      'a,b',
      '-',
      '日本語 🚀\r\u2028',
      '"',
    ]
    const random = fc.sample(fc.string({ unit: fc.constantFrom(...odd), minLength: 1, maxLength: 40 }), {
      seed: 3,
      numRuns: 20,
    })
    const all = [...new Set([...names, ...random])]
    for (const name of all) mount('--bind', make(`of/${name}.`), make(`at/${name}.`))
    const mounts = await readMountTable()
    for (const name of all) {
      const [found, ...more] = mountsAt(mounts, scratch.file(`at/${name}.`))
      expect(found).to.include({ path: scratch.file(`at/${name}.`), root: `/of/${name}.` })
      expect(more).to.deep.equal([])
    }
    expect(mountsBelow(mounts, scratch.file('at'))).to.have.length(all.length)
  })

  it('has what is mounted one on the other, the topmost last', async () => {
    const target = make('target')
    for (const name of ['z', 'a', 'm']) mount('--bind', make(name), target)
    expect((await at(target)).map(({ root }) => root)).to.deep.equal(['/z', '/a', '/m'])
    umount(target)
    expect((await at(target)).map(({ root }) => root)).to.deep.equal(['/z', '/a'])
  })

  it('tells what is hidden from what is there', async () => {
    const inner = make('outer/inner')
    mount('--bind', make('source'), inner)
    mount('-t', 'tmpfs', 'cover', scratch.file('outer'))
    expect(await at(inner)).to.deep.equal([])
    expect(mountsBelow(await readMountTable(), scratch.file('outer')).map(({ root }) => root)).to.deep.equal([
      '/source',
    ])
    umount(scratch.file('outer'))
    expect((await at(inner)).map(({ root }) => root)).to.deep.equal(['/source'])
  })

  it('tells the same directory mounted twice from another, and from one that was removed', async () => {
    for (const name of ['a', 'b', 'c']) make(`at/${name}`)
    mount('--bind', make('one'), scratch.file('at/a'))
    mount('--bind', make('one'), scratch.file('at/b'))
    mount('--bind', make('two'), scratch.file('at/c'))
    const top = async (name: string): Promise<Mount> => (await at(scratch.file(`at/${name}`))).at(-1)!
    expect(sameVolume(await top('a'), await top('b'))).to.be.true
    expect(sameVolume(await top('a'), await top('c'))).to.be.false

    rmdirSync(scratch.file('one'))
    expect((await top('a')).root).to.equal('/one//deleted')
    expect(sameVolume(await top('a'), await top('b'))).to.be.false
  })

  it('tells what cannot be written, be it the mount or all of the file system', async () => {
    for (const name of ['mount', 'all', 'neither']) make(name)
    mount('--bind', '-o', 'ro', scratch.file('neither'), scratch.file('mount'))
    mount('-t', 'tmpfs', '-o', 'ro', 'none', scratch.file('all'))
    mount('--bind', scratch.file('neither'), scratch.file('neither'))
    const found = await Promise.all(['mount', 'all', 'neither'].map((name) => at(scratch.file(name))))
    expect(found.map(([one]) => isReadonly(one!))).to.deep.equal([true, true, false])
  })
})
