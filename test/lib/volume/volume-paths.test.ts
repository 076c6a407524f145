import { dirname } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import type { TakenMount } from '../../../lib/volume/take-mount.js'
import { stageUsageOf, usageOf } from '../../../lib/volume/usage.js'
import { allocPath, seenPath, stagingPath, targetPath } from '../../../lib/volume/volume-paths.js'
import type { VolumeAccess } from '../../../lib/volume/volume.js'

const root = '/state/volumes/disk'

/** Texts with what paths are made of, and what escapes and usages are made of, so that some come near each other. */
const part = fc.constantFrom(
  'a',
  'A',
  'b',
  '.',
  '..',
  '/',
  '~',
  '~2e',
  'h',
  '\0',
  '\n',
  'é',
  'e\u0301',
  '\ud800',
  'rw',
  '-',
)
const text = fc.oneof(
  fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('')),
  fc.string({ minLength: 1, unit: 'binary' }),
  fc.constantFrom('x'.repeat(300), `${'x'.repeat(300)}y`, 'staging', 'per-alloc', 'rw-mount-single-node-writer'),
)
const access: fc.Arbitrary<VolumeAccess> = fc
  .record({
    kind: fc.constantFrom('mount', 'block'),
    accessMode: fc.constantFrom('SINGLE_NODE_WRITER', 'SINGLE_NODE_READER_ONLY', 'MULTI_NODE_MULTI_WRITER'),
    readonly: fc.boolean(),
    mountFlags: fc.array(fc.constantFrom('ro', 'a', 'a,b', ''), { maxLength: 2 }),
  })
  .map(({ kind, mountFlags, ...rest }) => ({ kind, ...rest, ...(kind === 'mount' && { mountFlags }) }))
const use: fc.Arbitrary<TakenMount> = fc.record(
  { plugin: fc.constant('disk'), namespace: text, volumeId: text, allocId: text, access, mountName: text },
  { requiredKeys: ['plugin', 'namespace', 'volumeId', 'allocId', 'access'] },
)
/** The same use with one thing in it changed, or none. */
const twoUses = fc.tuple(
  use,
  use,
  fc.constantFrom(...(['namespace', 'volumeId', 'allocId', 'access', 'mountName'] as const)),
)

const whichUse = ({ namespace, volumeId, allocId, access, mountName }: TakenMount): string =>
  JSON.stringify([namespace, volumeId, allocId, usageOf(access), mountName])
const whichStage = ({ namespace, volumeId, access }: TakenMount): string =>
  JSON.stringify([namespace, volumeId, stageUsageOf(access)])

describe('the paths of volumes', () => {
  const plain: TakenMount = {
    plugin: 'disk',
    namespace: 'default',
    volumeId: 'v1',
    allocId: 'a1',
    access: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', readonly: true },
  }

  it('say whose they are', () => {
    expect(stagingPath(root, plain)).to.equal(`${root}/staging/default/v1/mount-single-node-writer`)
    expect(targetPath(root, plain)).to.equal(`${root}/per-alloc/a1/default/v1/ro-mount-single-node-writer`)
    expect(targetPath(root, { ...plain, mountName: 'logs' })).to.equal(
      `${root}/per-alloc/a1/default/v1/ro-mount-single-node-writer.logs`,
    )
    expect(allocPath(root, 'a1')).to.equal(`${root}/per-alloc/a1`)
  })

  it('stay where they belong, whatever the ids: a part for each, of safe characters and not too long', () => {
    fc.assert(
      fc.property(use, (any) => {
        const staging = stagingPath(root, any).slice(root.length).split('/')
        const target = targetPath(root, any).slice(root.length).split('/')
        expect([staging.length, target.length]).to.deep.equal([5, 6])
        expect([staging[1], target[1]]).to.deep.equal(['staging', 'per-alloc'])
        for (const name of [...staging.slice(1), ...target.slice(1)])
          expect(name).to.match(/^[a-z0-9_~-][a-z0-9._~-]{0,254}$/)
        expect(dirname(dirname(dirname(targetPath(root, any))))).to.equal(allocPath(root, any.allocId))
      }),
    )
  })

  it('are never those of another use', () => {
    fc.assert(
      fc.property(twoUses, ([one, other, field]) => {
        for (const two of [other, { ...one, [field]: other[field] }]) {
          if (two.mountName === undefined) delete two.mountName
          const isSame = whichUse(one) === whichUse(two)
          expect(targetPath(root, one).toLowerCase() === targetPath(root, two).toLowerCase()).to.equal(isSame)
          const isSameStage = whichStage(one) === whichStage(two)
          expect(stagingPath(root, one) === stagingPath(root, two)).to.equal(isSameStage)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('are not taken for a use without a name where one is named as a usage', () => {
    const [one, two] = [
      { ...plain, mountName: 'x' },
      { ...plain, volumeId: 'v1/ro-mount-single-node-writer.x' },
    ]
    expect(targetPath(root, one)).not.to.equal(targetPath(root, two))
  })

  it('are seen by the plugin below its own root', () => {
    expect(seenPath(`${root}/staging/default/v1/x`, root, '/local/csi')).to.equal('/local/csi/staging/default/v1/x')
    expect(seenPath(`${root}/staging/v`, `${root}/`, '/local/csi/')).to.equal('/local/csi/staging/v')
    expect(seenPath(`${root}/staging/v`, root, root)).to.equal(`${root}/staging/v`)
    expect(seenPath(root, root, '/local/csi')).to.equal('/local/csi')
    fc.assert(
      fc.property(use, (any) => {
        const path = targetPath(root, any)
        expect(seenPath(path, root, '/c')).to.equal(`/c${path.slice(root.length)}`)
      }),
    )
  })
})
