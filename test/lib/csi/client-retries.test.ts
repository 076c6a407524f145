import { expect } from 'chai'
import { csiClient, type CsiTarget } from '../../../lib/csi/client.js'
import type { CsiRpc } from '../../../lib/csi/rpcs.js'
import { caught, clientsOfPlugins, policy, staged } from './client-support.js'

describe('the CSI client', () => {
  const { connect, start } = clientsOfPlugins()

  describe('makes a call again', () => {
    const stages = (asked: () => CsiRpc[]) => asked().filter((rpc) => rpc === 'NodeStageVolume').length

    for (const status of ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'ABORTED'] as const) {
      it(`after ${status}, until it succeeds`, async () => {
        const { client, asked } = await connect({ replies: { NodeStageVolume: [{ status }, { status }, { status }] } })
        await client.nodeStageVolume(staged)
        expect(stages(asked)).to.equal(4)
      })
    }

    for (const status of ['UNIMPLEMENTED', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'NOT_FOUND'] as const) {
      it(`never after ${status}`, async () => {
        const { client, asked } = await connect({ replies: { NodeStageVolume: [{ status, repeat: true }] } })
        expect((await caught(client.nodeStageVolume(staged))).details).to.include({ grpcCode: status })
        expect(stages(asked)).to.equal(1)
      })
    }

    it('a few times only after RESOURCE_EXHAUSTED', async () => {
      const exhausted = { status: 'RESOURCE_EXHAUSTED', repeat: true } as const
      const { client, asked } = await connect({ replies: { NodeStageVolume: [exhausted] } })
      expect((await caught(client.nodeStageVolume(staged))).details).to.include({ attempts: 4 })
      expect(stages(asked)).to.equal(4)
    })

    it('after its connection was lost, and after an attempt that got lost in the plugin', async () => {
      const { client, asked } = await connect(
        { replies: { NodeStageVolume: [{ fault: 'disconnect' }, { fault: 'hang' }] } },
        { attemptMs: 100 },
      )
      await client.nodeStageVolume(staged, { timeoutMs: 2_000 })
      expect(stages(asked)).to.equal(3)
    })

    it('no longer than the caller says', async () => {
      const { client } = await connect({ replies: { NodeStageVolume: [{ status: 'ABORTED', repeat: true }] } })
      const failure = await caught(client.nodeStageVolume(staged, { timeoutMs: 150 }))
      expect(failure.details).to.include({ outcome: 'unknown' })
      expect(['ABORTED', 'DEADLINE_EXCEEDED']).to.include(failure.details['grpcCode'])
    })

    it('never a page whose token the plugin does not take', async () => {
      const aborted = { status: 'ABORTED', repeat: true } as const
      const { client, asked } = await connect({
        capabilities: { controller: ['LIST_VOLUMES'] },
        replies: { ListVolumes: [aborted] },
      })
      await caught(client.listVolumes({ startingToken: 'old' }))
      expect(asked().filter((rpc) => rpc === 'ListVolumes')).to.have.length(1)
    })

    it('on the instance that came in the place of its own, once the process of that is gone', async () => {
      const old = await start({ replies: { NodeStageVolume: [{ fault: 'hang' }] } })
      const young = await start()
      let current: CsiTarget = old.channel
      let leave!: () => void
      const left = new Promise<void>((resolve) => (leave = resolve))
      const asked = new Set<CsiTarget>()
      let ask!: () => void
      const waiting = new Promise<void>((resolve) => (ask = resolve))
      const gone = (target: CsiTarget) => (asked.add(target), ask(), left)
      const done = csiClient({ pick: () => current, gone, policy }).nodeStageVolume(staged)
      await old.plugin.waitForCall('NodeStageVolume')
      current = young.channel
      await old.plugin.disconnect()
      await waiting
      expect([...asked]).to.deep.equal([old.channel])
      expect(young.plugin.calls.filter(({ rpc }) => rpc === 'NodeStageVolume')).to.deep.equal([])
      leave()
      await done
      expect(young.plugin.calls.filter(({ rpc }) => rpc === 'NodeStageVolume')).to.have.length(1)
    })
  })
})
