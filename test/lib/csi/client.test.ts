import { expect } from 'chai'
import type { CsiStatusName } from '../../../lib/csi/server-status.js'
import { outcomeOf } from '../../../lib/csi/status.js'
import type { PlugstreamError } from '../../../lib/errors.js'
import { caught, clientsOfPlugins, mount, staged, volume, type AnyClient } from './client-support.js'
import { inDomain, rpcTypes, Samples } from './samples.js'

describe('the CSI client', () => {
  const { connect } = clientsOfPlugins()

  describe('sends', () => {
    it('what has every field set only where the plugin advertises it, unless it is forced to', async () => {
      const { client, asked } = await connect({
        services: ['controller', 'node', 'groupController'],
        capabilities: { plugin: ['CONTROLLER_SERVICE'], controller: [], node: [], groupController: [] },
      })
      const sent: string[] = []
      for (const { rpc, request } of rpcTypes()) {
        if (rpc.startsWith('GetMetadata')) continue
        const call = (client as unknown as AnyClient)[`${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`]!
        const given = inDomain(request, new Samples(0).message(request))
        const failure: unknown = await call(given).then(
          () => undefined,
          (error: unknown) => error,
        )
        if ((failure as PlugstreamError | undefined)?.code === 'ERR_CSI_UNSUPPORTED') {
          expect(asked(), rpc).to.not.include(rpc)
          await call(given, { force: true }).catch(() => undefined) // the answer may lack something
        } else sent.push(rpc)
        expect(asked(), rpc).to.include(rpc)
      }
      expect(sent).to.deep.equal([
        'GetPluginInfo',
        'GetPluginCapabilities',
        'Probe',
        'ValidateVolumeCapabilities',
        'ControllerGetCapabilities',
        'GroupControllerGetCapabilities',
        'NodeUnpublishVolume',
        'NodeGetCapabilities',
        'NodeGetInfo',
      ])
    })

    it('the health of one volume also to who lists that of all', async () => {
      const health = { volume_health: { volume_id: 'v' } }
      const { client } = await connect({
        capabilities: { controller: ['LIST_VOLUME_HEALTH'] },
        replies: { ControllerGetVolumeHealth: [{ response: health }] },
      })
      expect((await client.controllerGetVolumeHealth({ volumeId: 'v' })).volumeHealth.healthy).to.equal(true)
    })

    it('nothing of a controller that is only claimed to be there', async () => {
      const { client, asked } = await connect({ services: ['node'], capabilities: { plugin: ['CONTROLLER_SERVICE'] } })
      expect((await caught(client.createVolume(volume))).code).to.equal('ERR_CSI_UNSUPPORTED')
      expect(asked()).to.deep.equal([])
    })

    it('and asks once a connection what is advertised', async () => {
      const { client, plugin, channel, asked } = await connect()
      const reads = () => asked().filter((rpc) => rpc === 'NodeGetCapabilities').length
      await Promise.all([client.nodeStageVolume(staged), client.nodeStageVolume(staged)])
      await client.nodeStageVolume(staged)
      expect(reads()).to.equal(1)

      await plugin.change({ capabilities: { node: [] } })
      const lost = new Promise<void>((resolve) => channel.onLink((state) => state === 'lost' && resolve()))
      await plugin.disconnect()
      await lost
      expect((await caught(client.nodeStageVolume(staged))).code).to.equal('ERR_CSI_UNSUPPORTED')
      expect(reads()).to.equal(2)

      await plugin.change({ capabilities: { node: ['STAGE_UNSTAGE_VOLUME'] } })
      await channel.fingerprint('csi-node', new AbortController().signal)
      await client.nodeStageVolume(staged)
      expect(reads()).to.equal(3)
    })

    it('nothing while it cannot be told what is advertised, and that is final', async () => {
      const { client } = await connect({
        replies: { NodeGetCapabilities: [{ status: 'INTERNAL' }, { fault: 'hang' }] },
      })
      const failed = await caught(client.nodeStageVolume(staged))
      expect(failed.details).to.include({ rpc: 'NodeGetCapabilities', grpcCode: 'INTERNAL', outcome: 'final' })
      const hung = await caught(client.nodeStageVolume(staged, { timeoutMs: 50 }))
      expect(hung.details).to.include({ rpc: 'NodeStageVolume', grpcCode: 'DEADLINE_EXCEEDED', outcome: 'final' })
    })

    it('nothing once its channel is closed, which does not wait for what is advertised', async () => {
      const { client, channel, plugin } = await connect({ replies: { NodeGetCapabilities: [{ fault: 'hang' }] } })
      const failure = caught(client.nodeStageVolume(staged))
      await plugin.waitForCall('NodeGetCapabilities')
      const startedAt = performance.now()
      await channel.close()
      expect((await failure).code).to.equal('ERR_CLOSED')
      expect(performance.now() - startedAt).to.be.below(5_000) // its deadline is twice as far away
    })
  })

  describe('tells of a failure', () => {
    const unknown = ['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'ABORTED']
    const final = [
      'UNKNOWN',
      'INVALID_ARGUMENT',
      'NOT_FOUND',
      'ALREADY_EXISTS',
      'PERMISSION_DENIED',
      'FAILED_PRECONDITION',
    ]
    final.push('OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'DATA_LOSS', 'UNAUTHENTICATED')
    for (const status of [...unknown, ...final] as CsiStatusName[]) {
      const outcome = unknown.includes(status) ? 'unknown' : 'final'
      it(`that the outcome of ${status} is ${outcome}, with call, code and words`, async () => {
        const { client } = await connect(
          { replies: { NodeStageVolume: [{ status, message: 'so it is' }] } },
          { policy: {} },
        )
        const failure = await caught(client.nodeStageVolume(staged))
        expect(failure.code).to.equal('ERR_CSI_RPC')
        expect(failure.details).to.deep.equal({
          rpc: 'NodeStageVolume',
          grpcCode: status,
          grpcDetails: 'so it is',
          outcome,
        })
        expect(outcomeOf(failure)).to.equal(outcome)
        expect(failure.retryable).to.equal(unknown.includes(status) && status !== 'CANCELLED')
      })
    }

    it('that the outcome is unknown where the connection was lost, the deadline passed, or the caller left', async () => {
      const hang = { fault: 'hang' } as const
      const { client, plugin } = await connect(
        { replies: { NodeStageVolume: [{ fault: 'disconnect' }, hang, hang] } },
        { policy: {} },
      )
      const lost = await caught(client.nodeStageVolume(staged))
      expect(lost.details).to.include({ connectionLost: true, outcome: 'unknown' })
      const late = await caught(client.nodeStageVolume(staged, { timeoutMs: 200 }))
      expect(late.details).to.include({ grpcCode: 'DEADLINE_EXCEEDED', outcome: 'unknown' })
      const stop = new AbortController()
      const left = caught(client.nodeStageVolume(staged, { signal: stop.signal }))
      await plugin.waitForCall('NodeStageVolume', 3)
      stop.abort()
      expect((await left).code).to.equal('ERR_ABORTED')
      expect(outcomeOf(await left)).to.equal('unknown')
    })

    it('that the outcome is final where nothing was sent', async () => {
      const { client } = await connect()
      expect(outcomeOf(await caught(client.nodeStageVolume({} as never)))).to.equal('final')
      expect(outcomeOf(await caught(client.getCapacity()))).to.equal('final')
      const early = await caught(client.nodeStageVolume(staged, { signal: AbortSignal.abort() }))
      expect([early.code, outcomeOf(early)]).to.deep.equal(['ERR_ABORTED', 'final'])
    })

    it('without the secrets and the mount flags that a driver repeats', async () => {
      const message = 'mount -o vers=4,password=hunter2 as root:hunter3 failed'
      const { client } = await connect({ replies: { NodeStageVolume: [{ status: 'INTERNAL', message }] } })
      const failure = await caught(
        client.nodeStageVolume({
          ...staged,
          volumeCapability: { ...mount, mountFlags: ['vers=4', 'password=hunter2'] },
          secrets: { root: 'hunter3' },
        }),
      )
      expect(failure.details['grpcDetails']).to.equal('mount -o ***,*** as root:*** failed')
      expect(failure.message).to.not.match(/hunter/)
    })
  })
})
