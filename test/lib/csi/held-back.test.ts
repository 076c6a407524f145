import { expect } from 'chai'
import { csiClient, type CsiTarget } from '../../../lib/csi/client.js'
import { untilLetGo } from '../../../lib/csi/held-back.js'
import { outcomeOf } from '../../../lib/csi/status.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { CallHolds } from '../../../lib/plugin/call-holds.js'

const failureOf = (work: Promise<unknown>): Promise<PlugstreamError> =>
  work.then(
    () => expect.fail('it went on'),
    (failure: unknown) => failure as PlugstreamError,
  )

describe('a call that is held back', () => {
  const nothingElse = { call: () => Promise.resolve({}), capabilities: () => ({ names: [], unknown: [] }) }
  const target = { ...nothingElse, async *stream() {} } as unknown as CsiTarget

  /** A client whose plugin is picked only when it is not held. */
  function heldClient() {
    const holds = new CallHolds()
    const letGo = holds.hold('a')
    const picked: boolean[] = []
    const pick = (): CsiTarget => (picked.push(holds.held('a') !== undefined), target)
    return { client: csiClient({ pick, held: () => holds.held('a') }), letGo, holds, picked }
  }

  for (const [what, begin] of [
    ['one that is checked', (client) => client.nodeUnpublishVolume({ volumeId: 'v', targetPath: '/t' })],
    ['one as it is on the wire', (client) => client.call('NodeGetInfo', {})],
    ['a stream', (client) => drained(client.getMetadataAllocated({ snapshotId: 's' }, { force: true }))],
    ['a stream as it is on the wire', (client) => drained(client.stream('GetMetadataAllocated'))],
  ] as const satisfies [string, (client: ReturnType<typeof csiClient>) => Promise<unknown>][])
    it(`picks its plugin when it is let go: ${what}`, async () => {
      const { client, letGo, holds, picked } = heldClient()
      const done = begin(client)
      const over = holds.held('a')
      expect(picked).to.deep.equal([])
      letGo()
      const again = holds.hold('a') // held again, before anybody has heard that it was not
      await over
      expect(picked).to.deep.equal([])
      again()
      await done
      expect(picked).to.deep.equal([false])
    })

  it('is given up when its time is over, or its caller gives up; nothing was sent', async () => {
    const { client, picked } = heldClient()
    const volume = { volumeId: 'v', targetPath: '/t' }
    const late = await failureOf(client.nodeUnpublishVolume(volume, { timeoutMs: 5 }))
    expect(late).to.include({ code: 'ERR_PLUGIN_NOT_READY', retryable: true })
    expect(late.message).to.equal('NodeUnpublishVolume: its plugin is being replaced, and not back in time')
    const caller = new AbortController()
    const given = failureOf(client.nodeUnpublishVolume(volume, { signal: caller.signal }))
    caller.abort()
    expect(await given).to.include({ code: 'ERR_ABORTED' })
    expect([late, await given].map(outcomeOf)).to.deep.equal(['final', 'final'])
    expect(picked).to.deep.equal([])
  })

  it('goes on at once where nothing is held', async () => {
    await untilLetGo('Probe', undefined, { timeoutMs: 0 })
    await untilLetGo('Probe', () => undefined, { timeoutMs: 0 })
  })
})

async function drained(values: AsyncIterable<unknown>): Promise<void> {
  for await (const value of values) void value
}
