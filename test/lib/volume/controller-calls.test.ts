import { expect } from 'chai'
import { checkRequest } from '../../../lib/csi/check-request.js'
import type { CsiClient } from '../../../lib/csi/client.js'
import { volumeRetryMs } from '../../../lib/defaults.js'
import { invalidOption, PlugstreamError } from '../../../lib/errors.js'
import { memoryStore } from '../../../lib/store/memory-store.js'
import { ControllerCalls } from '../../../lib/volume/controller-calls.js'
import { Operations } from '../../../lib/volume/operations.js'
import type { VolumePorts } from '../../../lib/volume/ports.js'
import type { SecretsRequest, VolumeEvent } from '../../../lib/volume/volume.js'
import { gate } from '../../fakes/fake-store.js'
import { fakeHost, FakePlugin, rpcFailure } from '../../fakes/fake-volumes.js'
import { Clock, failureOf, refused, settled } from './support.js'

type Answer = (request: object) => unknown

/** A controller that notes what it is asked, and what is on record then; it answers what it is told to, or else with nothing. */
class FakeController {
  readonly asked: { call: string; request: object; records: string[] }[] = []
  readonly #answers = new Map<string, Answer[]>()
  inFlight = 0
  records = new Map<string, string>()

  will(call: string, ...answers: (Answer | PlugstreamError)[]): void {
    const all = answers.map((one) => (one instanceof PlugstreamError ? (): never => fail(one) : one))
    this.#answers.set(call, [...(this.#answers.get(call) ?? []), ...all])
  }

  get calls(): string[] {
    return this.asked.map(({ call }) => call)
  }

  readonly client = new Proxy({} as CsiClient, {
    get: (_, call: string) => async (request: object) => {
      this.asked.push({ call, request, records: [...this.records.values()] })
      this.inFlight++
      try {
        await Promise.resolve()
        return await (this.#answers.get(call)?.shift() ?? (() => ({})))(request)
      } finally {
        this.inFlight--
      }
    },
  })
}

const fail = (failure: PlugstreamError): never => {
  throw failure
}
const unknown = rpcFailure('DEADLINE_EXCEEDED', 'unknown')
const attach = {
  plugin: 'disk',
  volumeId: 'v1',
  nodeId: 'node-1',
  volumeCapability: { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' },
  readonly: false,
} as const
const detach = { plugin: 'disk', volumeId: 'v1', nodeId: 'node-1' }

interface Opened {
  calls: ControllerCalls
  operations: Operations
  events: VolumeEvent[]
  problems: PlugstreamError[]
  held: Set<string>
  close: () => Promise<void>
}

async function open(controller: FakeController, over: Partial<VolumePorts> = {}): Promise<Opened> {
  const { ports } = await fakeHost(new FakePlugin(), controller.records, {
    client: () => controller.client,
    check: checkRequest,
    ...over,
  })
  const operations = new Operations()
  const events: VolumeEvent[] = []
  const problems: PlugstreamError[] = []
  const held = new Set<string>()
  const mustBeFree = ({ volumeId }: { volumeId: string }): void => {
    if (held.has(volumeId)) throw new PlugstreamError('ERR_VOLUME_BUSY', `${volumeId} is held`, { retryable: true })
  }
  const calls = await ControllerCalls.open(ports, operations, mustBeFree, {
    event: (event) => events.push(event),
    problem: (problem) => problems.push(problem),
  })
  const close = async (): Promise<void> => {
    calls.close()
    await operations.close()
  }
  return { calls, operations, events, problems, held, close }
}

/** Tells a story with a controller, which can be opened again on the same records. */
const withController =
  (tell: (controller: FakeController, first: Opened, again: () => Promise<Opened>) => Promise<void>) =>
  async (): Promise<void> => {
    const controller = new FakeController()
    const opened = [await open(controller)]
    const again = async (): Promise<Opened> => {
      await opened.at(-1)!.close()
      opened.push(await open(controller))
      return opened.at(-1)!
    }
    try {
      await tell(controller, opened[0]!, again)
    } finally {
      for (const one of opened) await one.close()
    }
  }

describe('a call of a controller', () => {
  it(
    'is answered with what the plugin answers, and is on record from before it is sent until then',
    withController(async (controller, { calls, events }) => {
      controller.will('createVolume', () => ({ volume: { volumeId: 'v1', capacityBytes: 7n } }))
      const request = { name: 'data', volumeCapabilities: [attach.volumeCapability], parameters: { tier: 'fast' } }
      const answer = await calls.make('createVolume', { plugin: 'disk', ...request })
      expect(answer).to.deep.equal({ volume: { volumeId: 'v1', capacityBytes: 7n } })
      const [asked] = controller.asked
      expect(asked!.request).to.deep.equal(request)
      expect(asked!.records.map((text) => JSON.parse(text) as unknown)).to.deep.equal([
        { schema: 1, plugin: 'disk', call: 'createVolume', id: 'data', request },
      ])
      expect([...controller.records]).to.deep.equal([])
      expect(events).to.deep.equal([
        {
          kind: 'done',
          plugin: 'disk',
          volumeId: 'data',
          call: 'createVolume',
          message: 'createVolume of data: done',
          at: 0,
        },
      ])
    }),
  )

  it(
    'is forgotten when it has failed for good, which its caller is told',
    withController(async (controller, { calls, events }) => {
      const failure = rpcFailure('INVALID_ARGUMENT')
      controller.will('controllerPublishVolume', failure)
      expect(await failureOf(calls.make('controllerPublishVolume', attach))).to.equal(failure)
      expect([...controller.records]).to.deep.equal([])
      expect(events).to.deep.include({
        kind: 'failed',
        plugin: 'disk',
        volumeId: 'v1',
        call: 'controllerPublishVolume',
        message: failure.message,
        at: 0,
      })
      calls.pluginReady('disk')
      await settled()
      expect(controller.calls).to.deep.equal(['controllerPublishVolume'])
    }),
  )

  it('tells that the node is full where an attachment fails so, and only then', async () => {
    const controller = new FakeController()
    const full: string[] = []
    const { calls, close } = await open(controller, { isFull: (plugin) => void full.push(plugin) })
    const exhausted = rpcFailure('RESOURCE_EXHAUSTED')
    controller.will('controllerPublishVolume', rpcFailure('INTERNAL'), exhausted)
    controller.will('createSnapshot', exhausted)
    await failureOf(calls.make('controllerPublishVolume', attach))
    await failureOf(calls.make('createSnapshot', { plugin: 'disk', name: 's', sourceVolumeId: 'v1' }))
    expect(full).to.deep.equal([])
    await failureOf(calls.make('controllerPublishVolume', attach))
    expect(full).to.deep.equal(['disk'])
    await close()
  })

  it(
    'is done by NOT_FOUND where it deletes: there is nothing of it any more',
    withController(async (controller, { calls, events }) => {
      for (const call of ['deleteVolume', 'deleteSnapshot', 'deleteVolumeGroupSnapshot'])
        controller.will(call, rpcFailure('NOT_FOUND'))
      await calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' })
      await calls.make('deleteSnapshot', { plugin: 'disk', snapshotId: 's1' })
      await calls.make('deleteVolumeGroupSnapshot', { plugin: 'disk', groupSnapshotId: 'g1', snapshotIds: ['s1'] })
      expect([...controller.records]).to.deep.equal([])
      expect(events.map(({ kind }) => kind)).to.deep.equal(['done', 'done', 'done'])
    }),
  )

  it(
    'is not done by NOT_FOUND where it does not',
    withController(async (controller, { calls }) => {
      controller.will('controllerUnpublishVolume', rpcFailure('NOT_FOUND'))
      const failure = await failureOf(calls.make('controllerUnpublishVolume', detach))
      expect(failure.details).to.have.property('grpcCode', 'NOT_FOUND')
    }),
  )

  it(
    'is kept where nobody knows what became of it, and made again as soon as its plugin is there again',
    withController(async (controller, { calls, events }) => {
      controller.will('createSnapshot', unknown)
      const request = { plugin: 'disk', sourceVolumeId: 'v1', name: 'snap' }
      expect(await failureOf(calls.make('createSnapshot', request))).to.equal(unknown)
      expect(controller.records.size).to.equal(1)
      calls.pluginReady('other')
      await settled()
      expect(controller.calls).to.have.length(1)
      calls.pluginReady('disk')
      await settled()
      expect(controller.asked.map(({ request: asked }) => asked)).to.deep.equal([
        { sourceVolumeId: 'v1', name: 'snap' },
        { sourceVolumeId: 'v1', name: 'snap' },
      ])
      expect([...controller.records]).to.deep.equal([])
      expect(events.map(({ kind }) => kind)).to.deep.equal(['failed', 'done'])
    }),
  )

  it('is made again after a pause too, for as long as nobody knows, and no longer', async () => {
    using clock = new Clock()
    await withController(async (controller, { calls }) => {
      controller.will('deleteVolume', unknown, unknown, unknown, rpcFailure('FAILED_PRECONDITION'))
      await failureOf(calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' }))
      for (const [pauses, made] of [2, 3, 4, 4].entries()) {
        await clock.pass(2 ** pauses * volumeRetryMs)
        expect(controller.calls).to.have.length(made)
      }
      expect([...controller.records]).to.deep.equal([])
    })()
  })

  it(
    'is made again after the host was opened again, sizes to the byte',
    withController(async (controller, { calls }, again) => {
      const capacityRange = { requiredBytes: 2n ** 53n + 1n }
      const request = { name: 'data', volumeCapabilities: [attach.volumeCapability], capacityRange }
      controller.will('createVolume', unknown)
      await failureOf(calls.make('createVolume', { plugin: 'disk', ...request }))
      const second = await again()
      expect(second.problems).to.deep.equal([])
      expect(controller.calls).to.have.length(1)
      second.calls.pluginReady('disk')
      await settled()
      expect(controller.asked[1]!.request).to.deep.equal(request)
      expect([...controller.records]).to.deep.equal([])
    }),
  )

  it(
    'takes the place of the one about the same: what was attached perhaps, and is detached, is not attached again',
    withController(async (controller, { calls }, again) => {
      controller.will('controllerPublishVolume', unknown)
      controller.will('controllerUnpublishVolume', unknown)
      await failureOf(calls.make('controllerPublishVolume', attach))
      await failureOf(calls.make('controllerUnpublishVolume', detach))
      expect(controller.records.size).to.equal(1)
      const second = await again()
      second.calls.pluginReady('disk')
      await settled()
      const rest = controller.calls.slice(2)
      expect(rest).to.deep.equal(['controllerUnpublishVolume'])
      expect([...controller.records]).to.deep.equal([])
    }),
  )

  it(
    'takes the place of those for each node where it is for all, and the other way round',
    withController(async (controller, { calls }) => {
      controller.will('controllerPublishVolume', unknown, unknown, unknown)
      controller.will('controllerUnpublishVolume', unknown)
      for (const nodeId of ['node-1', 'node-2'])
        await failureOf(calls.make('controllerPublishVolume', { ...attach, nodeId }))
      expect(controller.records.size).to.equal(2)
      await failureOf(calls.make('controllerUnpublishVolume', { plugin: 'disk', volumeId: 'v1' }))
      expect(controller.records.size).to.equal(1)
      await failureOf(calls.make('controllerPublishVolume', attach))
      expect(controller.records.size).to.equal(1)
      calls.pluginReady('disk')
      await settled()
      const rest = controller.calls.slice(4)
      expect(rest).to.deep.equal(['controllerPublishVolume'])
    }),
  )

  for (const [make, request, remove, id] of [
    ['createVolume', { name: 'data', volumeCapabilities: [attach.volumeCapability] }, 'deleteVolume', 'volumeId'],
    ['createSnapshot', { name: 'data', sourceVolumeId: 'v1' }, 'deleteSnapshot', 'snapshotId'],
    [
      'createVolumeGroupSnapshot',
      { name: 'data', sourceVolumeIds: ['v1'] },
      'deleteVolumeGroupSnapshot',
      'groupSnapshotId',
    ],
  ] as const) {
    const deletion = { plugin: 'disk', [id]: 'x-1', ...(id === 'groupSnapshotId' && { snapshotIds: ['s1'] }) }

    for (const isReopened of [false, true])
      it(
        `is not made again where what it may have made was deleted by its id meanwhile: ${make}${isReopened ? ', of a host before' : ''}`,
        withController(async (controller, first, again) => {
          controller.will(make, unknown, unknown)
          await failureOf(first.calls.make(make, { plugin: 'disk', ...request }))
          await failureOf(first.calls.make(make, { plugin: 'other', ...request }))
          const { calls, events } = isReopened ? await again() : first
          await calls.make(remove, deletion)
          expect(
            controller.asked.at(-1)!.records.map((text) => (JSON.parse(text) as { plugin: string }).plugin),
          ).to.deep.equal(['other', 'disk'])
          expect(events.map(({ kind, message }) => [kind, message])).to.deep.include([
            'failed',
            `${make} of data is not made again: it may have made x-1, which is deleted`,
          ])
          const last = await again()
          for (const plugin of ['disk', 'other']) last.calls.pluginReady(plugin)
          await settled()
          expect(controller.calls).to.deep.equal([make, make, remove, make])
          expect([...controller.records]).to.deep.equal([])
        }),
      )

    it(
      `is made again after a deletion where its caller still waits for it: ${make}`,
      withController(async (controller, { calls }, again) => {
        const end = gate()
        controller.will(make, () => end.opened)
        const making = failureOf(calls.make(make, { plugin: 'disk', ...request }))
        await settled()
        await calls.make(remove, deletion)
        end.fail(unknown)
        await making
        expect(controller.records.size).to.equal(1)
        const second = await again()
        second.calls.pluginReady('disk')
        await settled()
        expect(controller.calls).to.deep.equal([make, remove, make])
      }),
    )
  }

  it(
    'leaves alone what is unknown of something else, of the same volume or of the same name',
    withController(async (controller, { calls }) => {
      controller.will('controllerPublishVolume', unknown)
      await failureOf(calls.make('controllerPublishVolume', attach))
      const capacityRange = { requiredBytes: 1n }
      await calls.make('controllerExpandVolume', { plugin: 'disk', volumeId: 'v1', capacityRange })
      await calls.make('controllerModifyVolume', { plugin: 'disk', volumeId: 'v1', mutableParameters: { iops: '1' } })
      await calls.make('createSnapshot', { plugin: 'disk', name: 'v1', sourceVolumeId: 'v2' })
      await calls.make('controllerPublishVolume', { ...attach, nodeId: 'node-2' })
      expect(controller.records.size).to.equal(1)
      calls.pluginReady('disk')
      await settled()
      expect(controller.asked.at(-1)).to.deep.include({ call: 'controllerPublishVolume' })
      expect(controller.asked.at(-1)!.request).to.include({ nodeId: 'node-1' })
      expect([...controller.records]).to.deep.equal([])
    }),
  )

  it('is made again also where it took the place of one that was just to be', async () => {
    using clock = new Clock()
    await withController(async (controller, { calls }) => {
      const end = gate()
      controller.will('controllerPublishVolume', unknown)
      controller.will('controllerUnpublishVolume', () => end.opened)
      await failureOf(calls.make('controllerPublishVolume', attach))
      const detaching = failureOf(calls.make('controllerUnpublishVolume', detach))
      calls.pluginReady('disk') // waits behind it
      await settled()
      end.fail(unknown)
      await detaching
      await clock.pass(volumeRetryMs)
      expect(controller.calls).to.deep.equal([
        'controllerPublishVolume',
        'controllerUnpublishVolume',
        'controllerUnpublishVolume',
      ])
      expect([...controller.records]).to.deep.equal([])
    })()
  })

  for (const call of ['deleteVolume', 'controllerUnpublishVolume'] as const)
    it(
      `takes no volume away that is in use, be it the first time or again: ${call}`,
      withController(async (controller, { calls, held, events }) => {
        held.add('v1')
        await failureOf(calls.make(call, { plugin: 'disk', volumeId: 'v1' }), 'ERR_VOLUME_BUSY')
        expect([...controller.records]).to.deep.equal([])
        held.clear()
        controller.will(call, unknown)
        await failureOf(calls.make(call, { plugin: 'disk', volumeId: 'v1' }))
        held.add('v1')
        calls.pluginReady('disk')
        await settled()
        expect(controller.calls).to.deep.equal([call])
        expect(events.at(-1)!.message).to.equal(`${call} is not made again: v1 is held`)
        held.clear()
        calls.pluginReady('disk')
        await settled()
        expect(controller.calls).to.deep.equal([call])
        expect([...controller.records]).to.deep.equal([])
      }),
    )

  it(
    'has its turn: two for one id never run at once, and others do not wait for them',
    withController(async (controller, { calls }) => {
      const end = gate()
      controller.will('controllerPublishVolume', () => end.opened)
      const first = calls.make('controllerPublishVolume', attach)
      const second = calls.make('controllerUnpublishVolume', detach)
      await calls.make('controllerPublishVolume', { ...attach, volumeId: 'v2' })
      await settled()
      expect([controller.calls, controller.inFlight]).to.deep.equal([
        ['controllerPublishVolume', 'controllerPublishVolume'],
        1,
      ])
      end.open()
      await Promise.all([first, second])
      expect(controller.calls.at(-1)).to.equal('controllerUnpublishVolume')
    }),
  )

  it('waits for its plugin, and is not on record before that is there', async () => {
    const there = gate()
    const controller = new FakeController()
    const { calls, close } = await open(controller, {
      ready: async () => there.opened.then(() => undefined as never),
    })
    const making = calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' })
    await settled()
    expect([controller.calls, controller.records.size]).to.deep.equal([[], 0])
    there.open()
    await making
    expect(controller.calls).to.deep.equal(['deleteVolume'])
    await close()
  })

  it('is not sent where it cannot be put on record', async () => {
    const controller = new FakeController()
    const full = new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
    const { calls, close } = await open(controller, {
      store: { read: memoryStore().read, save: () => Promise.reject(full) },
    })
    expect(await failureOf(calls.make('controllerPublishVolume', attach))).to.equal(full)
    expect(controller.calls).to.deep.equal([])
    await close()
  })

  it('is done where it was, also where the store fails then; its record goes when it can, and it is not made again', async () => {
    using clock = new Clock()
    const controller = new FakeController()
    const store = memoryStore(controller.records)
    let isFull = false
    const { calls, close } = await open(controller, {
      store: {
        read: store.read,
        save: async (batch) => {
          if (isFull) throw new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')
          return store.save(batch)
        },
      },
    })
    controller.will('controllerPublishVolume', () => {
      isFull = true
      return { publishContext: { lun: '7' } }
    })
    expect(await calls.make('controllerPublishVolume', attach)).to.deep.equal({ publishContext: { lun: '7' } })
    await clock.pass(volumeRetryMs)
    expect(controller.records.size).to.equal(1)
    isFull = false
    await clock.pass(2 * volumeRetryMs)
    expect([...controller.records]).to.deep.equal([])
    expect(controller.calls).to.have.length(1)
    await close()
  })

  it(
    'is refused after the host was closed, and ended by it where it is under way; its record stays',
    withController(async (controller, first, again) => {
      const never = gate()
      controller.will('deleteVolume', () => never.opened)
      const failing = failureOf(first.calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' }), 'ERR_CLOSED')
      await settled()
      first.calls.close()
      const closing = first.operations.close()
      const { message } = await failing
      expect(message).to.equal('deleteVolume of "v1" with plugin "disk": the host was closed (deleteVolume)')
      never.fail(unknown)
      await closing
      expect(controller.records.size).to.equal(1)
      await failureOf(first.calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v2' }), 'ERR_CLOSED')
      first.calls.pluginReady('disk')
      await settled()
      expect(controller.calls).to.deep.equal(['deleteVolume'])
      const second = await again()
      second.calls.pluginReady('disk')
      await settled()
      expect(controller.calls).to.deep.equal(['deleteVolume', 'deleteVolume'])
    }),
  )
})

describe('the secrets of a call of a controller', () => {
  it('are asked for by their name at each call, passed on, and stored nowhere', async () => {
    const controller = new FakeController()
    const asked: SecretsRequest[] = []
    const secrets = async (request: SecretsRequest): Promise<Record<string, string>> => {
      asked.push(request)
      return { password: `hunter${asked.length}` }
    }
    const { calls, events, close } = await open(controller, { secrets })
    controller.will('controllerPublishVolume', unknown)
    const failure = await failureOf(calls.make('controllerPublishVolume', { ...attach, secretsRef: 'keys' }))
    const texts = [...controller.records.values(), JSON.stringify(events), failure.message].join()
    expect(texts).to.contain('keys').and.not.contain('hunter')
    calls.pluginReady('disk')
    await settled()
    expect(controller.asked.map(({ request }) => (request as { secrets: object }).secrets)).to.deep.equal([
      { password: 'hunter1' },
      { password: 'hunter2' },
    ])
    const about = { secretsRef: 'keys', rpc: 'ControllerPublishVolume', plugin: 'disk', volumeId: 'v1' }
    expect(asked).to.deep.equal([about, about])
    for (const { records } of controller.asked) expect(records.join()).not.to.contain('hunter')
    await calls.make('createVolume', {
      plugin: 'disk',
      name: 'data',
      volumeCapabilities: [attach.volumeCapability],
      secretsRef: 'keys',
    })
    expect(asked[2]).to.deep.equal({ secretsRef: 'keys', rpc: 'CreateVolume', plugin: 'disk' })
    await close()
  })

  it('are refused where there are none, before anything is done', async () => {
    const controller = new FakeController()
    const { calls, close } = await open(controller, {
      secrets: ({ secretsRef }) => Promise.reject(invalidOption('secretsRef', secretsRef, 'the name of secrets')),
    })
    expect(await refused(() => calls.make('controllerPublishVolume', { ...attach, secretsRef: 'x' }))).to.equal(
      'secretsRef',
    )
    expect([controller.calls, controller.records.size]).to.deep.equal([[], 0])
    await close()
  })

  it(
    'are refused in the request, where they would be stored, and not shown',
    withController(async (controller, { calls }) => {
      for (const secrets of [{ password: 'hunter2' }, 'hunter2', null]) {
        const making = calls.make('controllerPublishVolume', { ...attach, secrets } as never)
        const { details, message } = await failureOf(making, 'ERR_OPTION_INVALID')
        expect(details).to.deep.equal({ field: 'secrets' })
        expect(message).to.contain('secretsRef').and.not.contain('hunter2')
      }
      expect([controller.calls, controller.records.size]).to.deep.equal([[], 0])
    }),
  )
})

describe('the door of a controller', () => {
  it(
    'refuses what cannot be sent by its field, before anything is done',
    withController(async (controller, { calls }) => {
      const rows: [call: string, request: unknown, field: string][] = [
        ['deleteVolume', undefined, 'request'],
        ['deleteVolume', null, 'request'],
        ['deleteVolume', 'v1', 'request'],
        ['deleteVolume', { plugin: 'disk' }, 'volumeId'],
        ['deleteVolume', { plugin: 'disk', volumeId: '' }, 'volumeId'],
        ['deleteVolume', { plugin: 'disk', volumeId: '../v1' }, 'volumeId'],
        ['deleteVolume', { plugin: 'disk', volumeId: 'x'.repeat(4_096) }, 'volumeId'],
        ['deleteVolume', { volumeId: 'v1' }, 'plugin'],
        ['deleteVolume', { plugin: '', volumeId: 'v1' }, 'plugin'],
        ['deleteVolume', { plugin: 'disk', volumeId: 'v1', secretsRef: '' }, 'secretsRef'],
        ['deleteSnapshot', { plugin: 'disk', snapshotId: 'a\nb' }, 'snapshotId'],
        ['createSnapshot', { plugin: 'disk', name: 's', sourceVolumeId: '..' }, 'sourceVolumeId'],
        ['deleteVolumeGroupSnapshot', { plugin: 'disk', groupSnapshotId: '\ud800' }, 'groupSnapshotId'],
        ['createVolume', { plugin: 'disk', volumeCapabilities: [attach.volumeCapability] }, 'name'],
        ['createVolume', { plugin: 'disk', name: 'data', volumeCapabilities: [] }, 'volumeCapabilities'],
        [
          'controllerExpandVolume',
          { plugin: 'disk', volumeId: 'v1', capacityRange: { requiredBytes: -1n } },
          'capacityRange.requiredBytes',
        ],
        [
          'controllerExpandVolume',
          { plugin: 'disk', volumeId: 'v1', capacityRange: { requiredBytes: 2n ** 63n } },
          'capacityRange.requiredBytes',
        ],
      ]
      for (const [call, request, field] of rows)
        expect(await refused(() => calls.make(call as never, request as never)), `${call} ${field}`).to.equal(field)
      expect([controller.calls, controller.records.size]).to.deep.equal([[], 0])
    }),
  )

  it(
    'takes a copy: the giver may use the object again',
    withController(async (controller, { calls }) => {
      const given = {
        plugin: 'disk',
        name: 'data',
        volumeCapabilities: [{ ...attach.volumeCapability }],
        parameters: { a: '1' },
      }
      const making = calls.make('createVolume', given)
      given.parameters.a = '2'
      given.name = 'other'
      await making
      expect(controller.asked[0]!.request).to.deep.include({ name: 'data', parameters: { a: '1' } })
    }),
  )
})

describe('the records of calls that nobody knows the end of', () => {
  it('are read but for those that cannot be, which stay and are told', async () => {
    const controller = new FakeController()
    const good = await open(controller)
    controller.will('deleteVolume', unknown)
    await failureOf(good.calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' }))
    await good.close()
    controller.records.set('volume-call/broken', '{')
    controller.records.set('volume-call/null', 'null')
    controller.records.set('volume-call/newer', '{"schema":2}')
    const { calls, problems, close } = await open(controller)
    const told = problems.map(({ code, details }) => `${code} ${details['key']}`).sort()
    expect(told).to.deep.equal([
      'ERR_STORE_CORRUPT volume-call/broken',
      'ERR_STORE_CORRUPT volume-call/null',
      'ERR_STORE_READ volume-call/newer',
    ])
    calls.pluginReady('disk')
    await settled()
    expect(controller.calls).to.deep.equal(['deleteVolume', 'deleteVolume'])
    expect([...controller.records.keys()].sort()).to.deep.equal([
      'volume-call/broken',
      'volume-call/newer',
      'volume-call/null',
    ])
    await close()
  })

  it('fail the opening where the store cannot be read at all', async () => {
    const broken = new PlugstreamError('ERR_STORE_READ', 'no such table')
    const whole = memoryStore()
    const read: VolumePorts['store']['read'] = async function* (prefix) {
      if (prefix === 'volume-call/') throw broken
      yield* whole.read(prefix)
    }
    expect(await failureOf(open(new FakeController(), { store: { ...whole, read } }))).to.equal(broken)
  })
})
