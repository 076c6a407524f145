import { expect } from 'chai'
import { shownAccess, stageUsageOf, usageOf } from '../../../lib/volume/usage.js'
import type { VolumeAccess } from '../../../lib/volume/volume.js'

const mount = (over: object = {}): VolumeAccess => ({ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', ...over })

/** Uses that are all different. */
const different: VolumeAccess[] = [
  mount(),
  mount({ readonly: true }),
  mount({ accessMode: 'MULTI_NODE_MULTI_WRITER' }),
  mount({ fsType: 'ext4' }),
  mount({ fsType: 'ext4', readonly: true }),
  mount({ volumeMountGroup: 'ext4' }),
  mount({ volumeMountGroup: '7' }),
  mount({ fsType: 'ext4', volumeMountGroup: '7' }),
  mount({ mountFlags: ['ext4'] }),
  mount({ mountFlags: ['a', 'b'] }),
  mount({ mountFlags: ['b', 'a'] }),
  mount({ mountFlags: ['a,b'] }),
  mount({ mountFlags: ['a","b'] }),
  mount({ mountFlags: [''] }),
  { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' },
  { kind: 'block', accessMode: 'SINGLE_NODE_WRITER', readonly: true },
]

describe('the usage of a volume', () => {
  it('says how, as what, and by how many it is used', () => {
    expect(usageOf(mount())).to.equal('rw-mount-single-node-writer')
    expect(usageOf(mount({ readonly: true }))).to.equal('ro-mount-single-node-writer')
    expect(usageOf({ kind: 'block', accessMode: 'MULTI_NODE_MULTI_WRITER' })).to.equal(
      'rw-block-multi-node-multi-writer',
    )
  })

  it('is equal for equal values, however they were written', () => {
    const flags = ['noatime', 'nodev']
    const one = mount({ fsType: 'ext4', mountFlags: flags, volumeMountGroup: '1000' })
    const other = { volumeMountGroup: '1000', mountFlags: [...flags], fsType: 'ext4', ...mount({ readonly: false }) }
    expect(usageOf(one)).to.equal(usageOf(other))
    expect(usageOf(mount({ fsType: '', mountFlags: [], volumeMountGroup: '' }))).to.equal(usageOf(mount()))
  })

  it('differs with every value, and with the order of mount options', () => {
    expect(new Set(different.map(usageOf)).size).to.equal(different.length)
  })

  it('is the same for staging whether it is read-only or not', () => {
    expect(stageUsageOf(mount({ readonly: true }))).to.equal(stageUsageOf(mount()))
    const staged = different.map(({ readonly: _ofUse, ...access }) => JSON.stringify(access))
    expect(new Set(different.map(stageUsageOf)).size).to.equal(new Set(staged).size)
  })

  it('is short and plain enough for the name of a directory', () => {
    const long = mount({ mountFlags: ['x'.repeat(10_000), '/../', '\0', '\ud800'], fsType: 'e/x' })
    for (const access of [...different, long]) expect(usageOf(access)).to.match(/^[a-z0-9-]{1,100}$/)
  })

  it('has no mount options in it, since they may hold credentials', () => {
    const access = mount({ fsType: 'cifs', mountFlags: ['username=joe', 'password=hunter2'] })
    expect(usageOf(access)).to.match(/^rw-mount-single-node-writer-[0-9a-f]{16}$/)
    expect(JSON.stringify(shownAccess(access)))
      .to.contain('cifs')
      .and.not.contain('joe')
      .and.not.contain('hunter2')
  })

  it('is shown with everything else, and the access stays as it was', () => {
    const access = mount({ readonly: true, fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '7' })
    expect(shownAccess(access)).to.deep.equal(mount({ readonly: true, fsType: 'ext4', volumeMountGroup: '7' }))
    expect(access).to.have.deep.property('mountFlags', ['noatime'])
    const block: VolumeAccess = { kind: 'block', accessMode: 'SINGLE_NODE_WRITER' }
    expect(shownAccess(block)).to.deep.equal(block)
  })
})
