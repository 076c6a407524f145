import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { credentials } from '@grpc/grpc-js'
import { csiProto } from '../../lib/csi/proto.js'

type IdentityClient = InstanceType<ReturnType<typeof csiProto>['Identity']>

/** What a plugin is reached with without the library: a gRPC client with nothing around it. */
export class BareClient {
  readonly #client: IdentityClient

  constructor(socketPath: string) {
    const { Identity } = csiProto()
    this.#client = new Identity(`unix:${socketPath}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    })
  }

  /** Asks whether it is ready, then who it is. */
  async ask(): Promise<void> {
    await new Promise<void>((resolve, reject) =>
      this.#client.Probe({}, (failure) => (failure ? reject(failure) : resolve())),
    )
    await new Promise<void>((resolve, reject) =>
      this.#client.GetPluginInfo({}, (failure) => (failure ? reject(failure) : resolve())),
    )
  }

  close(): void {
    this.#client.close()
  }
}

/** Connects again and again until somebody listens, as fast as the event loop turns. */
export async function connectAsSoonAsPossible(socketPath: string): Promise<void> {
  for (;;) {
    const socket = connect(socketPath)
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (connected) return
    await turn()
  }
}
