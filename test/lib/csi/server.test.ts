import { once } from 'node:events'
import { access, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Metadata, status as grpcStatus } from '@grpc/grpc-js'
import { expect } from 'chai'
import { serveCsi, socketPathOf, type CsiServer } from '../../../lib/csi/server.js'
import type { CsiServices } from '../../../lib/csi/server-handlers.js'
import { status } from '../../../lib/csi/server-status.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { RawClient } from './server-client.js'

const identity: CsiServices['identity'] = {
  GetPluginInfo: () => ({ name: 'driver.example.com', vendor_version: '1.2.3' }),
  GetPluginCapabilities: () => ({ capabilities: [] }),
  Probe: () => ({}),
}

describe('the CSI server kit', () => {
  let directory: string
  let socketPath: string
  let client: RawClient
  const servers = new Set<CsiServer>()

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ps-'))
    socketPath = join(directory, 'csi.sock')
    client = new RawClient(socketPath)
  })
  afterEach(async () => {
    await client.close()
    for (const server of servers) await server.close()
    servers.clear()
    expect(await readdir(directory)).to.deep.equal([])
    await rm(directory, { recursive: true })
  })

  async function serve(init: Partial<CsiServices> & { closeTimeoutMs?: number; idleConnectionMs?: number } = {}) {
    const server = await serveCsi({ identity, ...init, socketPath })
    servers.add(server)
    return server
  }

  describe('answers', () => {
    it('with what a handler gives back, at once or later, and gives it the request', async () => {
      await serve({
        node: {
          NodeGetInfo: async () => Promise.resolve({ node_id: 'n1', max_volumes_per_node: '9223372036854775807' }),
          NodePublishVolume: ({ volume_id, volume_context }) => {
            expect(volume_id).to.equal('v1')
            expect(volume_context).to.deep.equal({ a: 'b' })
            return {}
          },
        },
      })
      expect(await client.call('Identity.GetPluginInfo')).to.include({
        name: 'driver.example.com',
        vendor_version: '1.2.3',
      })
      expect(await client.call('Node.NodeGetInfo')).to.include({
        node_id: 'n1',
        max_volumes_per_node: '9223372036854775807',
      })
      await client.call('Node.NodePublishVolume', { volume_id: 'v1', volume_context: { a: 'b' } })
    })

    it('from the methods of an object that has a state', async () => {
      class Counter {
        #calls = 0
        NodeGetInfo() {
          this.#calls++
          return { node_id: `call ${this.#calls}` }
        }
      }
      await serve({ node: new Counter() })
      await client.call('Node.NodeGetInfo')
      expect(await client.call('Node.NodeGetInfo')).to.include({ node_id: 'call 2' })
    })

    it('an unset, a false and a true ready as three different things', async () => {
      const answers = [{}, { ready: { value: false } }, { ready: { value: true } }]
      await serve({ identity: { ...identity, Probe: () => answers.shift()! } })
      expect(await client.call('Identity.Probe')).to.deep.equal({ ready: null })
      expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: false } })
      expect(await client.call('Identity.Probe')).to.deep.equal({ ready: { value: true } })
    })

    it('UNIMPLEMENTED for a service and for a call that are not given', async () => {
      await serve({ node: { NodeGetInfo: () => ({ node_id: 'n1' }) } })
      expect(await client.failure('Controller.CreateVolume')).to.include({ code: grpcStatus.UNIMPLEMENTED })
      expect(await client.failure('GroupController.GroupControllerGetCapabilities')).to.include({
        code: grpcStatus.UNIMPLEMENTED,
      })
      expect(await client.failure('Node.NodeStageVolume')).to.include({ code: grpcStatus.UNIMPLEMENTED })
    })

    it('over a group controller and a stream of snapshot metadata', async () => {
      await serve({
        groupController: { GroupControllerGetCapabilities: () => ({ capabilities: [{ rpc: { type: 1 } }] }) },
        snapshotMetadata: {
          async *GetMetadataAllocated({ snapshot_id }) {
            expect(snapshot_id).to.equal('s1')
            for (let at = 0; at < 500; at++) yield await Promise.resolve({ volume_capacity_bytes: String(at) })
          },
        },
      })
      const { capabilities } = await client.call('GroupController.GroupControllerGetCapabilities')
      expect(capabilities).to.deep.equal([{ rpc: { type: 'CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT' }, type: 'rpc' }])
      const seen: string[] = []
      for await (const message of client.stream('SnapshotMetadata.GetMetadataAllocated', { snapshot_id: 's1' })) {
        seen.push((message as { volume_capacity_bytes: string }).volume_capacity_bytes)
      }
      expect(seen).to.deep.equal(Array.from({ length: 500 }, (_, at) => String(at)))
    })
  })

  describe('turns what a handler throws into a status:', () => {
    it('its own, with its message', async () => {
      await serve({
        controller: {
          DeleteVolume: () => Promise.reject(status('FAILED_PRECONDITION', 'v1 is in use – wait')),
          CreateVolume: () => {
            throw status('ALREADY_EXISTS', 'v1 is there')
          },
        },
        snapshotMetadata: {
          async *GetMetadataDelta() {
            yield await Promise.resolve({ volume_capacity_bytes: '1' })
            throw status('OUT_OF_RANGE', 'no such offset')
          },
        },
      })
      const deleted = await client.failure('Controller.DeleteVolume')
      expect(deleted).to.include({ code: grpcStatus.FAILED_PRECONDITION, details: 'v1 is in use – wait' })
      expect(await client.failure('Controller.CreateVolume')).to.include({ code: grpcStatus.ALREADY_EXISTS })
      const seen: object[] = []
      const failure = await (async () => {
        for await (const message of client.stream('SnapshotMetadata.GetMetadataDelta')) seen.push(message)
      })().catch((error: unknown) => error)
      expect(seen).to.have.lengthOf(1)
      expect(failure).to.include({ code: grpcStatus.OUT_OF_RANGE, details: 'no such offset' })
    })

    it('INTERNAL for anything else, with its message alone: no stack, no secret, no end', async () => {
      const thrown: unknown[] = [
        new Error('mount -o password=hunter2 failed'),
        'a text \ud800',
        new Error('x'.repeat(100_000)),
      ]
      await serve({
        node: {
          NodeStageVolume: () => {
            throw thrown.shift()
          },
        },
      })
      const secrets = { password: 'hunter2', empty: '' }
      const first = await client.failure('Node.NodeStageVolume', { secrets })
      expect(first).to.include({ code: grpcStatus.INTERNAL, details: 'mount -o password=*** failed' })
      expect(await client.failure('Node.NodeStageVolume')).to.include({
        code: grpcStatus.INTERNAL,
        details: 'a text \ufffd',
      })
      expect((await client.failure('Node.NodeStageVolume')).details).to.have.lengthOf(2_000)
    })

    it('INTERNAL for a response that is none, and the server goes on', async () => {
      await serve({
        node: {
          NodeGetInfo: () => undefined as unknown as object,
          NodeGetCapabilities: () => ({ capabilities: 'x' }) as unknown as object,
        },
      })
      expect(await client.failure('Node.NodeGetInfo')).to.include({ code: grpcStatus.INTERNAL })
      expect(await client.failure('Node.NodeGetCapabilities')).to.include({ code: grpcStatus.INTERNAL })
      await client.call('Identity.Probe')
    })
  })

  describe('tells a handler by its signal that nobody waits any more:', () => {
    function hanging() {
      const called = new Notice()
      const aborted = new Notice()
      const node: CsiServices['node'] = {
        NodeStageVolume: (_, { signal, metadata }) => {
          expect(metadata).to.be.instanceOf(Metadata)
          called.give()
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => {
              aborted.give()
              reject(new Error('gone'))
            }),
          )
        },
      }
      return { called, aborted, node }
    }

    it('the caller gave up', async () => {
      const { called, aborted, node } = hanging()
      await serve({ node })
      const giveUp = new AbortController()
      const call = client.call('Node.NodeStageVolume', {}, giveUp.signal).catch((error: unknown) => error)
      await called.given
      giveUp.abort()
      await aborted.given
      expect(await call).to.include({ code: grpcStatus.CANCELLED })
    })

    it('the connection was cut, after which the server takes a new one', async () => {
      const { called, aborted, node } = hanging()
      const server = await serve({ node })
      const call = client.call('Node.NodeStageVolume').catch((error: unknown) => error)
      await called.given
      server.disconnect()
      await aborted.given
      expect(await call).to.include({ code: grpcStatus.UNAVAILABLE })
      await client.call('Identity.Probe')
    })

    it('the server closes, and its patience is over', async () => {
      const { called, aborted, node } = hanging()
      const server = await serve({ node, closeTimeoutMs: 10 })
      const call = client.call('Node.NodeStageVolume').catch((error: unknown) => error)
      await called.given
      await server.close()
      await aborted.given
      expect(await call).to.include({ code: grpcStatus.UNAVAILABLE })
    })

    it('a reader of a stream is gone: the handler’s generator is ended', async () => {
      const ended = new Notice()
      await serve({
        snapshotMetadata: {
          async *GetMetadataAllocated() {
            try {
              for (;;) yield await Promise.resolve({ volume_capacity_bytes: '1' })
            } finally {
              ended.give()
            }
          },
        },
      })
      const stream = client.stream('SnapshotMetadata.GetMetadataAllocated')
      for await (const _ of stream) break
      stream.cancel()
      await ended.given
    })
  })

  describe('closing', () => {
    it('lets a call in flight finish, takes no new one, and removes the socket', async () => {
      const called = new Notice()
      const finish = new Notice()
      const server = await serve({
        node: {
          NodeGetInfo: async () => {
            called.give()
            await finish.given
            return { node_id: 'n1' }
          },
        },
      })
      const call = client.call('Node.NodeGetInfo')
      await called.given
      const closed = server.close()
      const late = new RawClient(socketPath)
      expect(await late.failure('Identity.Probe')).to.include({ code: grpcStatus.UNAVAILABLE })
      await late.close()
      expect(await readdir(directory)).to.deep.equal([])
      finish.give()
      expect(await call).to.include({ node_id: 'n1' })
      await closed
    })

    it('does not wait for a connection that never spoke', async () => {
      const server = await serve({ closeTimeoutMs: 3_600_000 })
      const mute = connect({ path: socketPath }).resume()
      await once(mute, 'connect')
      await client.call('Identity.Probe') // the server has accepted the mute one by now
      const gone = once(mute, 'close')
      await server.close()
      await gone
    })

    it('twice is one close, and works by `await using`', async () => {
      {
        await using server = await serve()
        expect(server.close()).to.equal(server.close())
      }
      expect(await readdir(directory)).to.deep.equal([])
    })

    it('never removes the socket of a server that came after', async () => {
      const old = await serve()
      await rename(socketPath, join(directory, 'aside'))
      await rm(join(directory, 'aside'))
      await serve({ identity: { ...identity, GetPluginInfo: () => ({ name: 'new' }) } })
      await old.close()
      expect(await client.call('Identity.GetPluginInfo')).to.include({ name: 'new' })
    })
  })

  it('closes connections that are idle', async () => {
    await serve({ idleConnectionMs: 1 })
    const raw = connect({ path: socketPath })
    raw.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0') // the first words of an HTTP/2 client, and no call
    await once(raw.resume(), 'close')
  })

  it('refuses to start without the whole Identity service, and makes no socket', async () => {
    const half = { GetPluginInfo: identity.GetPluginInfo } as CsiServices['identity']
    const failure = await serveCsi({ socketPath, identity: half }).catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(PlugstreamError).and.to.include({ code: 'ERR_OPTION_INVALID' })
    expect((failure as Error).message).to.contain('identity.GetPluginCapabilities')
  })

  it('refuses a path on which a live server is', async () => {
    await serve()
    const failure = await serve().catch((error: unknown) => error)
    expect(failure).to.include({ code: 'ERR_SOCKET' })
    await client.call('Identity.Probe')
  })

  describe('listens on an endpoint', () => {
    for (const endpoint of ['unix:///run/csi.sock', 'unix:/run/csi.sock', '/run/csi.sock']) {
      it(`such as ${endpoint}`, () => expect(socketPathOf(endpoint)).to.equal('/run/csi.sock'))
    }
    for (const endpoint of [
      '',
      'unix://run/csi.sock',
      'unix:csi.sock',
      'csi.sock',
      'tcp://127.0.0.1:1',
      'unix://',
      '/',
    ]) {
      it(`and not on ${JSON.stringify(endpoint)}`, async () => {
        const failure = await serveCsi({ endpoint, identity }).catch((error: unknown) => error)
        expect(failure).to.include({ code: 'ERR_OPTION_INVALID' })
        expect((failure as Error).message).to.match(/^endpoint is/)
      })
    }

    it('of a socket in a directory', async () => {
      servers.add(await serveCsi({ endpoint: `unix://${socketPath}`, identity }))
      await access(socketPath)
    })
  })
})

/** Something that happens once and can be awaited. */
class Notice {
  give!: () => void
  readonly given = new Promise<void>((resolve) => (this.give = resolve))
}
