import { Metadata, type ChannelInterface, type status } from '@grpc/grpc-js'

/** How clients of grpc-js make a call on a channel. */
export type CreateCall = ChannelInterface['createCall']
/** A call as grpc-js has it below its clients. */
export type GrpcCall = ReturnType<CreateCall>

/** A call that cannot be made: it ends with a status as soon as it is started. */
export class RefusedCall implements GrpcCall {
  constructor(
    private readonly code: status,
    private readonly details: string,
  ) {}

  start(_metadata: Metadata, listener: Parameters<GrpcCall['start']>[1]): void {
    const { code, details } = this
    // Not in the call itself: its caller has not got hold of it yet.
    queueMicrotask(() => listener.onReceiveStatus({ code, details, metadata: new Metadata() }))
  }

  sendMessageWithContext({ callback }: Parameters<GrpcCall['sendMessageWithContext']>[0]): void {
    if (callback) queueMicrotask(callback)
  }

  getPeer(): string {
    return 'unknown'
  }

  getCallNumber(): number {
    return -1
  }

  getAuthContext(): null {
    return null
  }

  cancelWithStatus(): void {}
  startRead(): void {}
  halfClose(): void {}
  setCredentials(): void {}
}
