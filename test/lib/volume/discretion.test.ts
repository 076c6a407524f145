import { expect } from 'chai'
import type { CsiClient } from '../../../lib/csi/client.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { Discretion } from '../../../lib/volume/discretion.js'
import { failureOf } from './support.js'

/** A client of which one call fails with a text, and a list is read. */
const client = (text: string): CsiClient =>
  ({
    nodeUnpublishVolume: () =>
      Promise.reject(
        new PlugstreamError('ERR_CSI_RPC', `NodeUnpublishVolume failed: ${text}`, {
          retryable: true,
          cause: new Error(text),
          details: { rpc: 'NodeUnpublishVolume', grpcDetails: text, attempts: 2, outcome: 'final' },
        }),
      ),
    allSnapshots: async function* () {
      throw new PlugstreamError('ERR_CSI_RPC', await Promise.resolve(`ListSnapshots failed: ${text}`))
    },
    nodeGetInfo: () => Promise.resolve({ nodeId: text }),
    allVolumes: async function* () {
      yield await Promise.resolve(text)
    },
  }) as unknown as CsiClient

describe('discretion', () => {
  it('keeps what a plugin was given out of its failures, the longest first, and leaves the rest of them', async () => {
    const discretion = new Discretion()
    discretion.gives('disk', { password: 'swordfish', user: 'sword', empty: '' })
    const failure = await failureOf(
      discretion
        .client('disk', client('no swordfish for sword'))
        .nodeUnpublishVolume({ volumeId: 'v', targetPath: '/' }),
    )
    expect(failure).to.include({ code: 'ERR_CSI_RPC', retryable: true }).and.not.have.property('cause')
    expect(failure.message).to.equal('NodeUnpublishVolume failed: no *** for ***')
    expect(failure.details).to.deep.equal({
      rpc: 'NodeUnpublishVolume',
      grpcDetails: 'no *** for ***',
      attempts: 2,
      outcome: 'final',
    })
  })

  const key = '-----BEGIN KEY-----\nq2"w\\e\n-----END KEY-----\n'
  for (const [how, told] of Object.entries({
    'without the line break at its end': key.trim(),
    'on one line': '-----BEGIN KEY----- q2"w\\e -----END KEY-----',
    'quoted, as JSON and Go do': `{"key":${JSON.stringify(key)}}`,
    'encoded, as in an address': `https://me:${encodeURIComponent(key.trim())}@host`,
    'cut in its midst': '-----BEGIN KEY----- q2"w\\e…',
  }))
    it(`knows a secret also ${how}`, async () => {
      const discretion = new Discretion()
      discretion.gives('disk', { key })
      const plugin = discretion.client('disk', client(told))
      const failure = await failureOf(plugin.nodeUnpublishVolume({ volumeId: 'v', targetPath: '/' }))
      expect(failure.message)
        .to.include('***')
        .and.not.match(/KEY|q2/)
      expect(failure.details['grpcDetails'])
        .to.include('***')
        .and.not.match(/KEY|q2/)
    })

  it('keeps them out of the failures of lists, too', async () => {
    const discretion = new Discretion()
    discretion.gives('disk', { password: 'swordfish' })
    const list = async (): Promise<void> => {
      for await (const _ of discretion.client('disk', client('no swordfish')).allSnapshots()) expect.fail('it has some')
    }
    expect((await failureOf(list())).message).to.equal('ListSnapshots failed: no ***')
  })

  it('knows what each plugin was given, and leaves what shows nothing of it as it is', async () => {
    const discretion = new Discretion()
    discretion.gives('other', { password: 'swordfish' })
    const failure = await failureOf(
      discretion.client('disk', client('swordfish')).nodeUnpublishVolume({ volumeId: 'v', targetPath: '/' }),
    )
    expect(failure.message).to.include('swordfish')
    expect(failure.cause).to.be.instanceOf(Error)
  })

  it('lets answers and lists pass', async () => {
    const discreet = new Discretion().client('disk', client('node-1'))
    expect(await discreet.nodeGetInfo()).to.deep.equal({ nodeId: 'node-1' })
    for await (const one of discreet.allVolumes()) expect(one).to.equal('node-1')
  })
})
