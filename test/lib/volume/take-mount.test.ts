import { expect } from 'chai'
import { checkAccess } from '../../../lib/csi/check-request.js'
import { volumeIdLimitBytes } from '../../../lib/defaults.js'
import { takeMount, takeMountRef, takeRef } from '../../../lib/volume/take-mount.js'
import type { MountRequest, VolumeAccess } from '../../../lib/volume/volume.js'
import { failureOf, refused } from './support.js'

const whole = {
  plugin: 'disk',
  volumeId: 'v1',
  namespace: 'team',
  allocId: 'a1',
  mountName: 'data',
  access: { kind: 'mount', accessMode: 'MULTI_NODE_READER_ONLY', mountFlags: ['noatime'], readonly: true },
  secretsRef: 'keys',
  volumeContext: { size: 'big' },
  publishContext: { lun: '7' },
} as const satisfies MountRequest

/** What a request is refused for, with something in it that is not right. */
const fieldOf = (over: object): Promise<unknown> => refused(() => takeMount({ ...whole, ...over }, checkAccess))

type Door = (given: never, check: typeof checkAccess) => unknown

describe('a request to mount', () => {
  it('is taken as it is', () => {
    expect(takeMount(whole, checkAccess)).to.deep.equal(whole)
  })

  it('has the namespace `default` and the usual access where it says nothing', () => {
    expect(takeMount({ plugin: 'disk', volumeId: 'v1', allocId: 'a1' }, checkAccess)).to.deep.equal({
      plugin: 'disk',
      namespace: 'default',
      volumeId: 'v1',
      allocId: 'a1',
      access: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' },
    })
  })

  it('is a copy: its giver may use the object again', () => {
    const given = structuredClone(whole) as unknown as {
      access: { mountFlags: string[] }
      volumeContext: Record<string, string>
      publishContext: Record<string, string>
    }
    const taken = takeMount(given as unknown as MountRequest, checkAccess)
    given.access.mountFlags.push('exec')
    given.volumeContext['size'] = 'small'
    given.publishContext['lun'] = '8'
    expect(taken).to.deep.equal(whole)
  })

  it('is the same whether it says that it may write, or nothing', () => {
    const access: VolumeAccess = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' }
    expect(takeMount({ ...whole, access: { ...access, readonly: false } }, checkAccess).access).to.deep.equal(access)
  })

  const ids: [what: string, id: unknown][] = [
    ['of 4 KiB', 'x'.repeat(4_096)],
    ['that is too long in bytes only', 'é'.repeat(volumeIdLimitBytes / 2 + 1)],
    ['..', '..'],
    ['.', '.'],
    ['a/../b', 'a/../b'],
    ['../b', '../b'],
    ['a/..', 'a/..'],
    ['/./', '/./'],
    ['with a newline', 'a\nb'],
    ['with a NUL', 'a\0b'],
    ['with an escape sequence', '\u001b[2J'],
    ['with a control character of Latin-1', 'a\u0085b'],
    ['with the first half of a surrogate pair', 'a\ud800'],
    ['with the second half of one', '\udc00a'],
    ['without anything in it', ''],
    ['that is missing', undefined],
    ['that is null', null],
    ['that is a number', 7],
    ['that is a list', ['v1']],
  ]
  for (const [what, volumeId] of ids)
    it(`is refused for a volume id ${what.replaceAll('/', ' / ')}`, async () => {
      expect(await fieldOf({ volumeId })).to.equal('volumeId')
    })

  it('takes every other id as it is, also the longest, and paths, dots, blanks and all of Unicode', () => {
    const good = [
      'x'.repeat(volumeIdLimitBytes),
      'é'.repeat(volumeIdLimitBytes / 2),
      'projects/p/zones/z/disks/d',
      '/vol/export',
      'server#share#sub#',
      'a..b',
      '...',
      '.hidden',
      ' a b ',
      '日本語 🚀 e\u0301',
      '\u202e',
      '-rf',
      '$(x)',
      'con',
    ]
    for (const volumeId of good)
      expect(takeMount({ ...whole, volumeId }, checkAccess)).to.deep.equal({ ...whole, volumeId })
  })

  it('shows the beginning of what it is refused for, and what would be taken', async () => {
    const volumeId = 'x'.repeat(4_096)
    const { message } = await failureOf(Promise.resolve().then(() => takeRef({ plugin: 'disk', volumeId })))
    expect(message).to.equal(`volumeId is "${'x'.repeat(77)}…"; it must be at most ${volumeIdLimitBytes} bytes`)
  })

  it('is refused for each text that is none', async () => {
    for (const field of ['plugin', 'namespace', 'allocId', 'mountName', 'secretsRef'])
      for (const value of ['', null, 7, {}, ['a']])
        expect(await fieldOf({ [field]: value }), `${field}: ${JSON.stringify(value)}`).to.equal(field)
    for (const field of ['plugin', 'allocId']) expect(await fieldOf({ [field]: undefined })).to.equal(field)
  })

  it('is refused for contexts that are no objects of texts', async () => {
    for (const field of ['volumeContext', 'publishContext'])
      for (const value of [null, 'a=b', 7, { a: 1 }, { a: undefined }, { a: { b: 'c' } }, ['a']])
        expect(await fieldOf({ [field]: value }), `${field}: ${JSON.stringify(value)}`).to.equal(field)
  })

  it('is refused for an access that cannot be sent, by the field that is not right', async () => {
    const mode = 'SINGLE_NODE_WRITER'
    const rows: [access: unknown, field: string][] = [
      [null, 'access'],
      ['ro', 'access'],
      [{}, 'access.accessMode'],
      [{ kind: 'mount' }, 'access.accessMode'],
      [{ kind: 'mount', accessMode: 'ALWAYS' }, 'access.accessMode'],
      [{ kind: 'file', accessMode: mode }, 'access.kind'],
      [{ accessMode: mode }, 'access.kind'],
      [{ kind: 'mount', accessMode: mode, readonly: 'yes' }, 'access.readonly'],
      [{ kind: 'mount', accessMode: mode, readonly: 1 }, 'access.readonly'],
      [{ kind: 'mount', accessMode: mode, fsType: 7 }, 'access.fsType'],
      [{ kind: 'mount', accessMode: mode, mountFlags: 'noatime' }, 'access.mountFlags'],
      [{ kind: 'mount', accessMode: mode, mountFlags: ['noatime', 7] }, 'access.mountFlags[1]'],
    ]
    for (const [access, field] of rows) expect(await fieldOf({ access }), JSON.stringify(access)).to.equal(field)
  })

  it('is refused where it is no object', async () => {
    for (const given of [undefined, null, 'v1', 7])
      for (const door of [(ref: never) => takeRef(ref), takeMountRef, takeMount] as Door[])
        expect(await refused(() => door(given as never, checkAccess)), `${door.name} of ${given}`).to.equal('volume')
  })
})
