import { expect } from 'chai'
import type { CsiClient } from '../../../lib/csi/client.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { attach, detach, type ControllerPlugin } from '../../../lib/volume/attach-steps.js'
import { FakePlugin, rpcFailure } from '../../fakes/fake-volumes.js'
import { enough, failureOf } from './support.js'

const record = { plugin: 'disk', namespace: 'default', volumeId: 'v1', root: '/v', claims: [] }
const access = { kind: 'block', accessMode: 'MULTI_NODE_READER_ONLY' } as const

/** What a controller lists: which volumes, and on which nodes each is; undefined where it says nothing of that. */
type Listed = Record<string, readonly string[] | undefined>

/** A controller that lists where volumes are, if it does. */
function controller(listed?: Listed | PlugstreamError) {
  const plugin = new FakePlugin()
  if (listed) plugin.capabilities.add('LIST_VOLUMES_PUBLISHED_NODES')
  const client = {
    ...plugin.client,
    async *allVolumes() {
      if (listed instanceof PlugstreamError) throw listed
      for (const [volumeId, publishedNodeIds] of Object.entries(listed ?? {}))
        yield { volume: { volumeId }, ...(publishedNodeIds && { status: { publishedNodeIds } }) }
    },
  } as unknown as CsiClient
  const secrets: ControllerPlugin['secrets'] = async (rpc) => ({ secrets: { password: rpc } })
  return { plugin, half: { client, secrets } }
}

describe('attaching', () => {
  it('tells the controller which volume, which node and how, and gives what the node is to be told', async () => {
    const { plugin, half } = controller()
    const limits = enough()
    const volumeContext = { size: 'big' }
    expect(await attach(half, { ...record, volumeContext }, 'node-1', access, limits)).to.deep.equal({
      device: '/dev/v1',
    })
    expect(plugin.calls[0]!.request).to.deep.equal({
      volumeId: 'v1',
      nodeId: 'node-1',
      volumeCapability: access,
      volumeContext,
      secrets: { password: 'ControllerPublishVolume' },
    })
    expect([plugin.attached.get('v1'), limits.doing]).to.deep.equal(['node-1', 'ControllerPublishVolume'])
  })

  it('is nothing where the plugin has none of it', async () => {
    const { plugin, half } = controller()
    plugin.capabilities.delete('attach')
    expect(await attach(half, record, 'node-1', access, enough())).to.equal(undefined)
  })

  it('fails with what the plugin fails with', async () => {
    const { plugin, half } = controller()
    const failure = rpcFailure('FAILED_PRECONDITION')
    plugin.fail('ControllerPublishVolume', failure)
    expect(await failureOf(attach(half, record, 'node-1', access, enough()))).to.equal(failure)
  })
})

describe('detaching', () => {
  const detached = (half: ControllerPlugin): Promise<void> => detach(half, record, 'node-1', enough())

  it('tells the controller which volume and which node', async () => {
    const { plugin, half } = controller()
    plugin.attached.set('v1', 'node-1')
    await detached(half)
    expect(plugin.calls.map(({ request }) => request)).to.deep.equal([
      { volumeId: 'v1', nodeId: 'node-1', secrets: { password: 'ControllerUnpublishVolume' } },
    ])
    expect(plugin.attached.size).to.equal(0)
  })

  it('is nothing where the plugin has none of it', async () => {
    const { plugin, half } = controller()
    plugin.fail('ControllerUnpublishVolume', new PlugstreamError('ERR_CSI_UNSUPPORTED', 'not advertised'))
    await detached(half)
  })

  it('fails with what the plugin fails with, and does not look into its list', async () => {
    for (const failure of [rpcFailure('INTERNAL'), rpcFailure('UNAVAILABLE', 'unknown')]) {
      const { plugin, half } = controller({})
      plugin.fail('ControllerUnpublishVolume', failure)
      expect(await failureOf(detached(half))).to.equal(failure)
    }
  })

  const notFound = rpcFailure('NOT_FOUND')
  for (const [what, listed, isDetached] of [
    ['where the controller lists no nodes', undefined, false],
    ['while it lists the volume on this node', { v0: [], v1: ['node-2', 'node-1'] }, false],
    ['where it lists the volume on other nodes', { v1: ['node-2'], v2: ['node-1'] }, true],
    ['where it lists the volume on no node', { v1: [] }, true],
    [
      'where it lists the volume without nodes, of which the specification says that it is on none',
      { v1: undefined },
      true,
    ],
    ['where it lists other volumes only', { v2: ['node-1'] }, true],
  ] as [string, Listed | undefined, boolean][])
    it(`is ${isDetached ? '' : 'not '}done by NOT_FOUND ${what}`, async () => {
      const { plugin, half } = controller(listed)
      plugin.fail('ControllerUnpublishVolume', notFound)
      if (isDetached) await detached(half)
      else expect(await failureOf(detached(half))).to.equal(notFound)
    })

  it('is not done by NOT_FOUND where the list cannot be had', async () => {
    const failure = rpcFailure('UNAVAILABLE', 'unknown')
    const { plugin, half } = controller(failure)
    plugin.fail('ControllerUnpublishVolume', notFound)
    expect(await failureOf(detached(half))).to.equal(failure)
  })
})
