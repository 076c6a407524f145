import {
  ChannelCredentials,
  connectivityState,
  status,
  type ChannelInterface,
  type Client,
  type ClientOptions,
} from '@grpc/grpc-js'
import { messageOf, PlugstreamError } from '../errors.js'
import type { PluginChannel } from '../plugin/kind.js'
import { GrpcChannel } from './channel.js'
import { RefusedCall, type CreateCall, type GrpcCall } from './wire-call.js'

/** The class of a client, as `grpc.loadPackageDefinition` and generators of code for grpc-js give it. */
export type GrpcClientClass<C extends Client> = new (
  address: string,
  credentials: ChannelCredentials,
  options: Pick<ClientOptions, 'channelOverride'>,
) => C

/** What `host.client('grpc', name)` gives: a way to call whatever services the plugin has. */
export interface GrpcClient {
  /**
   * A client of a service. Each call goes over the connection that the plugin has at that moment, and fails with UNAVAILABLE where it
   * has none; one under way stays where it began. It needs no closing. Calls have the deadlines that their caller gives them.
   *
   * @example
   * const greeter = host.client<GrpcClient>('grpc', 'web').makeClient(Greeter)
   * greeter.sayHello({ name: 'you' }, (error, { message }) => …)
   */
  makeClient<C extends Client>(clientClass: GrpcClientClass<C>): C
  /** The same as a channel of grpc-js, for what takes one: the `channelOverride` of a client with options of its own. */
  readonly channel: ChannelInterface
}

/** @param pick the channel that is the right one now; what it throws becomes the status of a call. */
export function grpcClient(pick: () => PluginChannel): GrpcClient {
  const channel = new FollowingChannel(() => ofGrpc(pick()))
  return {
    channel,
    makeClient: (clientClass) =>
      new clientClass(channel.getTarget(), ChannelCredentials.createInsecure(), { channelOverride: channel }),
  }
}

function ofGrpc(channel: PluginChannel): GrpcChannel {
  if (channel instanceof GrpcChannel) return channel
  throw new PlugstreamError('ERR_USAGE', 'a gRPC client was given the channel of another kind of plugin')
}

/** Goes at each call to where the plugin is by then. Its connections are the host's, which alone closes them. */
class FollowingChannel implements ChannelInterface {
  constructor(private readonly pick: () => GrpcChannel) {}

  createCall(...args: Parameters<CreateCall>): GrpcCall {
    try {
      return this.pick().createCall(...args)
    } catch (failure) {
      return new RefusedCall(status.UNAVAILABLE, messageOf(failure))
    }
  }

  getTarget(): string {
    return 'plugstream'
  }

  getConnectivityState(): connectivityState {
    try {
      this.pick()
      return connectivityState.READY
    } catch {
      return connectivityState.TRANSIENT_FAILURE
    }
  }

  /** Told by nothing but time: `host.health$` has the events. */
  watchConnectivityState(_state: connectivityState, _deadline: Date | number, callback: (error?: Error) => void): void {
    queueMicrotask(() => callback(new Error('the health of a plugin is told by its host')))
  }

  getChannelzRef(): never {
    throw new PlugstreamError('ERR_USAGE', 'a client of a plugin has no one channel')
  }

  close(): void {}
}
