import { csiAttemptMs, csiOperationTimeoutMs, defaultTiming } from '../defaults.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import { checkOptions } from './call-options.js'
import { checkAdvertised, type TellCapabilities } from './gate.js'
import { elapsedMs } from '../clock.js'
import type { ListedVolume } from './messages/controller.js'
import type { VolumeHealthOf } from './messages/health.js'
import type { Page, PageRequest } from './messages/shared.js'
import type { SnapshotResponse } from './messages/snapshot.js'
import type { NoFields } from './message.js'
import { operations, type CsiOperations, type Operation } from './operations.js'
import { entriesOf } from './paging.js'
import { fieldsOf, takeOptions } from '../options.js'
import { untilLetGo } from './held-back.js'
import { withRetries, type AttemptPorts } from './retries.js'
import { retryPolicy, type RetryPolicy } from './retry-policy.js'
import type { AnyCsiRpc, CsiCall, CsiRpc, CsiStreamCall, CsiStreamRpc } from './rpcs.js'

/** How a call is made. */
export interface CsiOptions {
  signal?: AbortSignal | undefined
  /**
   * How long the call may take, retries included. Default: 120 000 for calls that change something, and `Timing.rpcTimeoutMs` for the
   * others; for streams, the longest wait for one message.
   */
  timeoutMs?: number | undefined
  /** Sends the call also where the plugin does not advertise it. Default: false. */
  force?: boolean | undefined
}

type Requested<Rpc extends AnyCsiRpc> = CsiOperations[Rpc][0]
type Answered<Rpc extends AnyCsiRpc> = CsiOperations[Rpc][1]

/** The request may be left out where it may be empty. */
type Method<Request, Answer> = NoFields extends Request
  ? (request?: Request, options?: CsiOptions) => Answer
  : (request: Request, options?: CsiOptions) => Answer

/** One method for each call of CSI, named as it is in camel case; see {@link CsiOperations}. */
export type CsiMethods = {
  readonly [Rpc in AnyCsiRpc as Uncapitalize<Rpc>]: Method<
    Requested<Rpc>,
    Rpc extends CsiStreamRpc ? AsyncIterable<Answered<Rpc>> : Promise<Answered<Rpc>>
  >
}

/**
 * A client for a plugin, over whatever channel is the right one at each attempt. Sizes are bigints, instants are Unix ms, enum values are
 * names (numbers where no name is known), and what is absent is not there. A call that the plugin does not answer is made again for as
 * long as it has time, and goes on with another instance where its own is replaced, never on two at once.
 *
 * Every call throws ERR_OPTION_INVALID naming the field, ERR_CSI_UNSUPPORTED where the plugin does not advertise it, ERR_CSI_PROTOCOL
 * where the answer lacks what it has to have or is about something else, and the errors of {@link CsiCall}; `outcomeOf` says what became of one that failed.
 *
 * @example
 * const client = host.client<CsiClient>('csi-controller', 'ebs')
 * const { volume } = await client.createVolume({
 *   name: 'vol-1',
 *   capacityRange: { requiredBytes: 2n ** 30n },
 *   volumeCapabilities: [{ kind: 'mount', accessMode: 'SINGLE_NODE_WRITER', fsType: 'ext4' }],
 * })
 * for await (const { snapshot } of client.allSnapshots({ sourceVolumeId: volume.volumeId })) console.log(snapshot.createdAt)
 */
export interface CsiClient extends CsiMethods {
  /** Every volume, page by page as they are asked for; `timeoutMs` counts for a page. */
  readonly allVolumes: Method<Requested<'ListVolumes'>, AsyncIterable<ListedVolume>>
  /** Every snapshot, likewise. */
  readonly allSnapshots: Method<Requested<'ListSnapshots'>, AsyncIterable<SnapshotResponse>>
  /** The health of every volume that the plugin has something to say of, likewise. */
  readonly allVolumeHealth: Method<Requested<'ControllerListVolumeHealth'>, AsyncIterable<VolumeHealthOf>>
  /** Makes a call by its name, once and as it is on the wire: unchecked, and not made again. */
  readonly call: CsiCall
  /** Likewise for the calls that answer with a stream. */
  readonly stream: CsiStreamCall
}

/** What a call goes to. One and the same value stands for one and the same server; what it advertises does not change. */
export interface CsiTarget {
  readonly call: CsiCall
  readonly stream: CsiStreamCall
  readonly capabilities: TellCapabilities
}

export interface CsiClientInit extends AttemptPorts<CsiTarget> {
  /** Deadline of calls that change nothing. Default: `Timing.rpcTimeoutMs`. */
  rpcTimeoutMs?: number | undefined
  /** Shortest deadline of one attempt of the others. Default: 60 000. */
  attemptMs?: number | undefined
  /** What is tried again, and after which pauses. Default: `retryPolicy`. */
  policy?: RetryPolicy | undefined
}

const initFields = fieldsOf<CsiClientInit>({
  pick: true,
  gone: true,
  closing: true,
  held: true,
  rpcTimeoutMs: true,
  attemptMs: true,
  policy: true,
})

/** An operation where the types of a single one do not matter. */
type AnyOperation = Operation<object, unknown, object, unknown>

/** @param init.pick gives the channel for an attempt; what it throws at first is what the call rejects with. */
export function csiClient(init: CsiClientInit): CsiClient {
  const { pick, gone, closing, held, ...limits } = takeOptions('init', init, initFields)
  if (typeof pick !== 'function') throw invalidOption('pick', pick, 'a function that gives a channel')
  const { rpcTimeoutMs = defaultTiming.rpcTimeoutMs, attemptMs = csiAttemptMs, policy = retryPolicy } = limits

  const unary = async (rpc: CsiRpc, request: object, options: CsiOptions): Promise<unknown> => {
    const { operation, message, needs } = prepared(rpc, request, options)
    const { changes = false } = operation
    const { signal, timeoutMs = changes ? csiOperationTimeoutMs : rpcTimeoutMs } = options
    const bounds = {
      signal,
      timeoutMs,
      attemptMs: changes ? Math.max(timeoutMs / 2, attemptMs) : timeoutMs,
      oneAtATime: changes,
      // A list says with ABORTED that it does not take a token any more.
      policy: (request as PageRequest).startingToken === undefined ? policy : { ...policy, ABORTED: undefined },
    }
    return withRetries(rpc, { pick, gone, closing, held }, bounds, async (target, attemptTimeoutMs) => {
      const limits = { timeoutMs: attemptTimeoutMs, ...(signal && { signal }) }
      const startedAt = elapsedMs()
      await checkAdvertised(rpc, needs, (list) => target.capabilities(list), limits)
      limits.timeoutMs = Math.max(1, attemptTimeoutMs - (elapsedMs() - startedAt))
      return read(rpc, operation, request, await target.call(rpc, message, limits))
    })
  }

  const streamed = async function* (rpc: CsiStreamRpc, request: object, options: CsiOptions): AsyncGenerator {
    const { operation, message, needs } = prepared(rpc, request, options)
    const { signal, timeoutMs = rpcTimeoutMs } = options
    await untilLetGo(rpc, held, { timeoutMs, signal })
    const target = pick()
    const limits = { timeoutMs, ...(signal && { signal }) }
    await checkAdvertised(rpc, needs, (list) => target.capabilities(list), limits)
    for await (const one of target.stream(rpc, message, limits)) yield read(rpc, operation, request, one)
  }

  const all =
    <Entry>(rpc: 'ListVolumes' | 'ListSnapshots' | 'ControllerListVolumeHealth') =>
    (request: PageRequest = {}, options: CsiOptions = {}) =>
      entriesOf(rpc, request, (page) => unary(rpc, page, options) as Promise<Page<Entry>>)

  const methodOf = (rpc: AnyCsiRpc) =>
    isStream(rpc)
      ? (request: object = {}, options: CsiOptions = {}) => streamed(rpc, request, options)
      : (request: object = {}, options: CsiOptions = {}) => unary(rpc, request, options)
  const methods = (Object.keys(operations) as AnyCsiRpc[]).map((rpc) => [
    `${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`,
    methodOf(rpc),
  ])
  return {
    ...(Object.fromEntries(methods) as CsiMethods),
    allVolumes: all('ListVolumes'),
    allSnapshots: all('ListSnapshots'),
    allVolumeHealth: all('ControllerListVolumeHealth'),
    call: async (rpc, request, options) => {
      const { signal, timeoutMs = rpcTimeoutMs } = options ?? {}
      await untilLetGo(rpc, held, { timeoutMs, signal })
      return pick().call(rpc, request, options)
    },
    stream: async function* (rpc, request, options) {
      const { signal, timeoutMs = rpcTimeoutMs } = options ?? {}
      await untilLetGo(rpc, held, { timeoutMs, signal })
      yield* pick().stream(rpc, request, options)
    },
  }
}

function isStream(rpc: AnyCsiRpc): rpc is CsiStreamRpc {
  return rpc === 'GetMetadataAllocated' || rpc === 'GetMetadataDelta'
}

/** A call that may be made, as far as can be told without its plugin. @throws ERR_OPTION_INVALID. */
function prepared(rpc: AnyCsiRpc, request: object, options: CsiOptions) {
  checkOptions(options, ['force'])
  const { force = false } = options
  if (typeof force !== 'boolean') throw invalidOption('force', force, 'true or false')
  const operation = operations[rpc] as unknown as AnyOperation
  const message = operation.request.write(request, '') ?? {}
  const { needs = [] } = operation
  return { operation, message, needs: force ? [] : typeof needs === 'function' ? needs(request) : needs }
}

/** @throws ERR_CSI_PROTOCOL where the answer lacks something. The plugin has done what it was to do: there is nothing to wait for. */
function read(rpc: string, { response, agrees }: AnyOperation, request: object, answer: object): unknown {
  try {
    const told = response.read(answer, '')
    agrees?.(request, told)
    return told
  } catch (error) {
    const { code, message, details } = PlugstreamError.from(error, 'ERR_CSI_PROTOCOL', 'the answer cannot be read')
    throw new PlugstreamError(code, `${rpc}: in the answer, ${message}`, { details: { rpc, ...details } })
  }
}
