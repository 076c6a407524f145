import { credentials } from '@grpc/grpc-js'
import { csiProto } from '../../lib/csi/proto.js'

type NodeClient = InstanceType<ReturnType<typeof csiProto>['Node']>

const volume_capability = { block: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } } as const

/** The node half of a plugin, called with nothing around it. */
export class BareNode {
  readonly #client: NodeClient

  constructor(socketPath: string) {
    const { Node } = csiProto()
    this.#client = new Node(`unix:${socketPath}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
  }

  async info(): Promise<void> {
    await done((told) => this.#client.NodeGetInfo({}, told))
  }

  async up(volume_id: string): Promise<void> {
    const [staging_target_path, target_path] = [`/staging/${volume_id}`, `/target/${volume_id}`]
    await done((told) => this.#client.NodeStageVolume({ volume_id, staging_target_path, volume_capability }, told))
    await done((told) =>
      this.#client.NodePublishVolume({ volume_id, staging_target_path, target_path, volume_capability }, told),
    )
  }

  async down(volume_id: string): Promise<void> {
    const [staging_target_path, target_path] = [`/staging/${volume_id}`, `/target/${volume_id}`]
    await done((told) => this.#client.NodeUnpublishVolume({ volume_id, target_path }, told))
    await done((told) => this.#client.NodeUnstageVolume({ volume_id, staging_target_path }, told))
  }

  close(): void {
    this.#client.close()
  }
}

function done(call: (told: (failure: Error | null) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    call((failure) => (failure ? reject(failure) : resolve()))
  })
}
