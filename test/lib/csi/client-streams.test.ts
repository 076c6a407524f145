import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { CsiChannel } from '../../../lib/csi/channel.js'
import { csiClient, type CsiClient } from '../../../lib/csi/client.js'
import { serveCsi, type CsiServer } from '../../../lib/csi/server.js'
import type { CallContext } from '../../../lib/csi/server-handlers.js'
import { status } from '../../../lib/csi/server-status.js'
import { all, caught } from './client-support.js'

type Blocks = AsyncIterable<{ block_metadata: { byte_offset: string; size_bytes: string }[] }>

describe('a stream of snapshot metadata', () => {
  let directory: string
  let server: CsiServer
  let channel: CsiChannel
  let client: CsiClient
  let stream: (context: CallContext) => Blocks
  let services: string[]
  const request = { snapshotId: 's' }
  const block = (at: number) => ({ block_metadata: [{ byte_offset: String(at), size_bytes: '1' }] })

  /** Blocks without end, and word of the end of who reads them. */
  function endless() {
    let sent = 0
    let tell!: () => void
    const left = new Promise<void>((resolve) => (tell = resolve))
    stream = async function* ({ signal }) {
      signal.addEventListener('abort', tell)
      for (;;) yield block(sent++)
    }
    return { left, sent: () => sent }
  }

  beforeEach(async () => {
    services = ['SNAPSHOT_METADATA_SERVICE']
    directory = await mkdtemp(join(tmpdir(), 'ps-'))
    const socketPath = join(directory, 'csi.sock')
    server = await serveCsi({
      socketPath,
      closeTimeoutMs: 100,
      identity: {
        GetPluginInfo: () => ({ name: 'csi.example.org', vendor_version: '1' }),
        GetPluginCapabilities: () => ({
          capabilities: services.map((type) => ({ service: { type: type as 'SNAPSHOT_METADATA_SERVICE' } })),
        }),
        Probe: () => ({}),
      },
      snapshotMetadata: { GetMetadataAllocated: (_, context) => stream(context) },
    })
    channel = new CsiChannel(socketPath, 10_000)
    client = csiClient({ pick: () => channel })
  })
  afterEach(async () => {
    await channel.close()
    await server.close()
    await rm(directory, { recursive: true })
  })

  it('gives every message, in order', async () => {
    stream = async function* () {
      for (let at = 0; at < 1_000; at++) yield block(at)
    }
    const offsets = (await all(client.getMetadataAllocated(request))).map(
      ({ blockMetadata }) => blockMetadata[0]?.byteOffset,
    )
    expect(offsets).to.deep.equal(Array.from({ length: 1_000 }, (_, at) => BigInt(at)))
  })

  it('is not made where the service is not advertised, unless it is forced', async () => {
    services = []
    stream = async function* () {
      yield block(1)
    }
    expect((await caught(all(client.getMetadataAllocated(request)))).code).to.equal('ERR_CSI_UNSUPPORTED')
    expect(await all(client.getMetadataAllocated(request, { force: true }))).to.have.length(1)
  })

  it('ends at the plugin when its reader leaves', async () => {
    const { left } = endless()
    for await (const _ of client.getMetadataAllocated(request)) break
    await left
  })

  it('fails and ends at the plugin when its signal is aborted between two messages, or while it waits for one', async () => {
    const { left } = endless()
    const stop = new AbortController()
    let heard = 0
    const reading = async () => {
      for await (const _ of client.getMetadataAllocated(request, { signal: stop.signal }))
        if (++heard === 3) stop.abort()
    }
    expect((await caught(reading())).code).to.equal('ERR_ABORTED')
    expect(heard).to.equal(3)
    await left

    const waiting = new AbortController()
    stream = async function* ({ signal }) {
      yield block(1)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const blocks = client.getMetadataAllocated(request, { signal: waiting.signal })[Symbol.asyncIterator]()
    await blocks.next()
    const second = caught(blocks.next())
    waiting.abort()
    expect((await second).code).to.equal('ERR_ABORTED')
  })

  it('fails as the plugin does in the middle of it', async () => {
    stream = async function* () {
      yield block(1)
      throw status('OUT_OF_RANGE', 'no such offset')
    }
    const heard: unknown[] = []
    const reading = async () => {
      for await (const one of client.getMetadataAllocated(request)) heard.push(one)
    }
    expect((await caught(reading())).details).to.include({ rpc: 'GetMetadataAllocated', grpcCode: 'OUT_OF_RANGE' })
    expect(heard).to.have.length(1)
  })

  it('fails where a message does not come in time, however long its reader took for the one before', async () => {
    stream = async function* ({ signal }) {
      yield block(1)
      yield block(2)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const blocks = client.getMetadataAllocated(request, { timeoutMs: 200 })[Symbol.asyncIterator]()
    await blocks.next()
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect((await blocks.next()).done).to.equal(false)
    expect((await caught(blocks.next())).details).to.include({ grpcCode: 'DEADLINE_EXCEEDED' })
  })

  it('fails where the connection is lost', async () => {
    endless()
    const reading = async () => {
      for await (const _ of client.getMetadataAllocated(request)) server.disconnect()
    }
    expect((await caught(reading())).details).to.include({ connectionLost: true, outcome: 'unknown' })
  })

  it('ends with ERR_CLOSED when the channel is closed, and does not keep it from closing', async () => {
    const { left } = endless()
    const blocks = client.getMetadataAllocated(request)[Symbol.asyncIterator]()
    await blocks.next()
    await channel.close()
    await left
    const ends = async () => {
      while (!(await blocks.next()).done);
    }
    expect((await caught(ends())).code).to.equal('ERR_CLOSED')
  })

  it('is no faster than its reader', async () => {
    const { sent } = endless()
    const blocks = client.getMetadataAllocated(request)[Symbol.asyncIterator]()
    await blocks.next()
    let before = -1
    while (before !== sent()) {
      before = sent()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(sent()).to.be.below(100_000)
    await blocks.return?.()
  })
})
