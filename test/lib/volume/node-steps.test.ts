import { expect } from 'chai'
import type { CsiClient } from '../../../lib/csi/client.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { checkFree, publish, stage, unpublish, unstage, type NodePlugin } from '../../../lib/volume/node-steps.js'
import type { Claim, VolumeRecord } from '../../../lib/volume/volume-record.js'
import { FakePlugin, hostRoot, rpcFailure } from '../../fakes/fake-volumes.js'
import { enough, failureOf } from './support.js'

const stagePath = `${hostRoot}/staging/default/v1/mount-single-node-writer`
const targetPath = `${hostRoot}/per-alloc/a/default/v1/rw-mount-single-node-writer`
const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
const claim: Claim = { allocId: 'a', access, path: targetPath, held: true }
const record: VolumeRecord = {
  plugin: 'disk',
  namespace: 'default',
  volumeId: 'v1',
  root: hostRoot,
  stage: { access, path: stagePath },
  claims: [claim],
}

/** The steps with a plugin in memory, and what was done to directories, in order with its calls. */
function steps(plugin = new FakePlugin()) {
  const done: string[] = []
  const client = new Proxy(plugin.client, {
    get: (calls, name: keyof CsiClient) => (request: never) => {
      done.push(name)
      return (calls[name] as (request: never) => unknown)(request)
    },
  })
  const asked: string[] = []
  const node: NodePlugin = {
    client,
    ready: async () => undefined,
    seen: (path) => path,
    secrets: async (rpc) => {
      asked.push(rpc)
      return { secrets: { password: rpc } }
    },
    files: {
      expectsMounts: true,
      bootId: undefined,
      mounts: plugin.mounts,
      placeOf: async (_root, path) => {
        done.push(`place ${path}`)
        return path
      },
      makeDirectory: async (_root, path) => void done.push(`make ${path}`),
      isLink: async () => false,
      removeIfEmpty: (path) => void done.push(`remove ${path}`),
      look: () => Promise.reject(new Error('nobody looks at volumes here')),
    },
  }
  return { plugin, node, done, asked, limits: enough() }
}

describe('staging', () => {
  it('makes its place first, and tells the plugin all it has to know', async () => {
    const { plugin, node, done, asked, limits } = steps()
    const contexts = { publishContext: { lun: '7' }, volumeContext: { size: 'big' } }
    expect(await stage(node, { ...record, ...contexts }, record.stage!, limits)).to.equal(true)
    expect(done).to.deep.equal([`make ${stagePath}`, 'nodeStageVolume'])
    expect(plugin.calls[0]!.request).to.deep.equal({
      volumeId: 'v1',
      stagingTargetPath: stagePath,
      volumeCapability: access,
      ...contexts,
      secrets: { password: 'NodeStageVolume' },
    })
    expect(asked).to.deep.equal(['NodeStageVolume'])
    expect(limits.doing).to.equal('NodeStageVolume')
  })

  it('is at the place as the plugin sees it', async () => {
    const { plugin, node, limits } = steps()
    const seen = (path: string): string => path.replace(hostRoot, '/local/csi')
    await stage({ ...node, seen }, record, record.stage!, limits)
    expect(plugin.calls[0]!.path).to.equal('/local/csi/staging/default/v1/mount-single-node-writer')
  })

  it('leaves no directory where the plugin has none of it', async () => {
    const { plugin, node, done, limits } = steps()
    plugin.capabilities.delete('stage')
    expect(await stage(node, record, record.stage!, limits)).to.equal(false)
    expect(done.slice(2)).to.deep.equal([`remove ${stagePath}`, `remove ${hostRoot}/staging/default/v1`])
  })

  it('fails with what the plugin fails with, and takes nothing away that may be there', async () => {
    const { plugin, node, done, limits } = steps()
    const failure = rpcFailure('DEADLINE_EXCEEDED', 'unknown')
    plugin.fail('NodeStageVolume', failure)
    expect(await failureOf(stage(node, record, record.stage!, limits))).to.equal(failure)
    expect(done).to.deep.equal([`make ${stagePath}`, 'nodeStageVolume'])
  })
})

describe('publishing', () => {
  it('makes the directory above, and leaves the place itself to the plugin', async () => {
    const { plugin, node, done, limits } = steps()
    await stage(node, record, record.stage!, limits)
    await publish(node, record, claim, limits)
    expect(done.slice(2)).to.deep.equal([`place ${targetPath}`, 'nodePublishVolume'])
    expect(plugin.calls[1]!.request).to.deep.equal({
      volumeId: 'v1',
      targetPath,
      stagingTargetPath: stagePath,
      volumeCapability: access,
      readonly: false,
      secrets: { password: 'NodePublishVolume' },
    })
    expect(plugin.offences).to.deep.equal([])
  })

  it('says beside the access whether it is read-only, and of no stage where there is none', async () => {
    const { plugin, node, limits } = steps()
    plugin.capabilities.delete('stage')
    const { stage: _none, ...unstaged } = record
    await publish(node, unstaged, { ...claim, access: { ...access, readonly: true } }, limits)
    const { request } = plugin.calls[0]!
    expect(request).to.deep.include({ readonly: true, volumeCapability: access })
    expect(request).not.to.have.property('stagingTargetPath')
  })

  it('fails where the plugin answers OK and nothing is mounted', async () => {
    const { plugin, node, limits } = steps()
    await stage(node, record, record.stage!, limits)
    plugin.fail('NodePublishVolume', (_call, effect) => {
      effect()
      plugin.published.clear()
    })
    const { details } = await failureOf(publish(node, record, claim, limits), 'ERR_MOUNT')
    expect(details).to.deep.equal({ path: targetPath })
  })

  it('fails where it is to be read-only and is not', async () => {
    const { plugin, node, limits } = steps()
    await stage(node, record, record.stage!, limits)
    plugin.fail('NodePublishVolume', (_call, effect) => {
      effect()
      plugin.published.set(targetPath, { volumeId: 'v1', readonly: false, block: false })
    })
    const readonly = { ...claim, access: { ...access, readonly: true } }
    await failureOf(publish(node, record, readonly, limits), 'ERR_MOUNT')
  })

  it('needs no mount for a block device, for which the specification promises none', async () => {
    const { plugin, node, limits } = steps()
    await stage(node, record, record.stage!, limits)
    plugin.fail('NodePublishVolume', (_call, effect) => {
      effect()
      plugin.published.clear()
    })
    await publish(node, record, { ...claim, access: { ...access, kind: 'block' } }, limits)
  })
})

describe('a place for a new use', () => {
  it('is free, or refused by what is mounted there from elsewhere', async () => {
    const { plugin, node } = steps()
    await checkFree(node, hostRoot, targetPath)
    plugin.foreign.add(targetPath)
    const { message } = await failureOf(checkFree(node, hostRoot, targetPath), 'ERR_MOUNT')
    expect(message).to.contain('elsewhere')
  })

  it('is looked for where the directory really is', async () => {
    const { plugin, node } = steps()
    plugin.foreign.add('/real/x')
    const files = { ...node.files, placeOf: async (): Promise<string> => '/real/x' }
    await failureOf(checkFree({ ...node, files }, hostRoot, targetPath), 'ERR_MOUNT')
  })
})

for (const [what, rpc, method, undo, path] of [
  ['unpublishing', 'NodeUnpublishVolume', 'nodeUnpublishVolume', unpublish, targetPath],
  ['unstaging', 'NodeUnstageVolume', 'nodeUnstageVolume', unstage, stagePath],
] as const)
  describe(what, () => {
    const mounted = async (): Promise<ReturnType<typeof steps>> => {
      const all = steps()
      if (path === stagePath) all.plugin.staged.set(path, 'v1')
      else all.plugin.published.set(path, { volumeId: 'v1', readonly: false, block: false })
      return all
    }
    const isThere = ({ staged, published }: FakePlugin): boolean => staged.has(path) || published.has(path)

    it('undoes what is there, and removes the empty directories', async () => {
      const { plugin, node, done, limits, asked } = await mounted()
      await undo(node, record, path, limits)
      expect(isThere(plugin)).to.equal(false)
      const above = path.slice(0, path.lastIndexOf('/'))
      expect(done).to.deep.equal([`place ${path}`, method, `remove ${path}`, `remove ${above}`])
      expect(plugin.calls[0]!.request).to.deep.equal({
        volumeId: 'v1',
        [path === stagePath ? 'stagingTargetPath' : 'targetPath']: path,
      })
      expect([asked, limits.doing]).to.deep.equal([[], rpc])
    })

    it('is done where the plugin knows nothing of it, and the mount table neither', async () => {
      const { plugin, node, done, limits } = steps()
      plugin.fail(rpc, rpcFailure('NOT_FOUND'))
      await undo(node, record, path, limits)
      expect(done).to.include(`remove ${path}`)
    })

    it('fails with NOT_FOUND while something is still mounted there', async () => {
      const { plugin, node, done, limits } = await mounted()
      const failure = rpcFailure('NOT_FOUND')
      plugin.fail(rpc, failure)
      expect(await failureOf(undo(node, record, path, limits))).to.equal(failure)
      expect(done.join()).not.to.contain('remove')
      expect(isThere(plugin)).to.equal(true)
    })

    it('is not done by an OK alone, while something is still mounted there or below', async () => {
      for (const left of [path, `${path}/below`]) {
        const { plugin, node, done, limits } = await mounted()
        plugin.fail(rpc, (_call, effect) => {
          effect()
          plugin.foreign.add(left)
        })
        const { retryable } = await failureOf(undo(node, record, path, limits), 'ERR_MOUNT')
        expect(retryable).to.equal(true)
        expect(done.join()).not.to.contain('remove')
      }
    })

    it('fails with every other failure, whatever the mount table says', async () => {
      for (const failure of [rpcFailure('INTERNAL'), rpcFailure('UNAVAILABLE', 'unknown')]) {
        const { plugin, node, limits } = steps()
        plugin.fail(rpc, failure)
        expect(await failureOf(undo(node, record, path, limits))).to.equal(failure)
      }
    })

    it('needs no call that the plugin does not have where nothing is mounted', async () => {
      const { plugin, node, limits } = await mounted()
      const unsupported = new PlugstreamError('ERR_CSI_UNSUPPORTED', `${rpc}: the plugin does not advertise it`)
      plugin.fail(rpc, unsupported, unsupported)
      expect(await failureOf(undo(node, record, path, limits))).to.equal(unsupported)
      plugin.staged.clear()
      plugin.published.clear()
      await undo(node, record, path, limits)
    })
  })
