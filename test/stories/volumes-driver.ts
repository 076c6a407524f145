import { mkdir, realpath } from 'node:fs/promises'
import { serveCsi, type CsiServer } from 'plugstream/csi'
import { chooseAttach } from '../../examples/hostpath-driver/attach.js'
import { controller } from '../../examples/hostpath-driver/controller.js'
import { identity } from '../../examples/hostpath-driver/identity.js'
import { node } from '../../examples/hostpath-driver/node.js'
import { State } from '../../examples/hostpath-driver/state.js'

/** A point of a call: it has come and nothing was done yet, or everything was and nobody was told. */
export interface Point {
  rpc: string
  when: 'before' | 'after'
  volumeId: string
  /** Part of the path that it is about. Default: any. */
  path?: string
}

/** What of a request tells which volume and path it is about. */
export interface AboutVolume {
  volume_id?: string
  target_path?: string
  staging_target_path?: string
}

export const isAt =
  (rpc: string, when: Point['when'], request: AboutVolume) =>
  (point: Point): boolean =>
    point.rpc === rpc &&
    point.when === when &&
    point.volumeId === request.volume_id &&
    (request.target_path ?? '').includes(point.path ?? '')

interface WatchedInit {
  socketPath: string
  stateDir: string
  /** Told of each point of each call about a volume; the call goes on when it resolves, and fails where it rejects. */
  at: (rpc: string, when: Point['when'], request: AboutVolume) => Promise<void>
}

type Handler = (request: AboutVolume, context: unknown) => object | Promise<object>

/** The hostpath driver of the examples, with real mounts, whose calls can be held before and after what they do. */
export async function watchedDriver({ socketPath, stateDir, at }: WatchedInit): Promise<CsiServer> {
  await mkdir(stateDir, { recursive: true })
  const state = new State(await realpath(stateDir))
  const [nodeId, maxVolumes] = ['n1', 0]
  const attach = await chooseAttach(state.directory)
  const driver = { state, attach, nodeId, maxVolumes, topology: { 'topology.example/node': nodeId } }
  await state.nodes.save({ id: state.nodes.idOf(nodeId), maxVolumes })
  const watched = <Handlers extends object>(handlers: Handlers): Handlers =>
    Object.fromEntries(
      (Object.entries(handlers) as [string, Handler][]).map(([rpc, handle]) => [
        rpc,
        async (request: AboutVolume, context: unknown) => {
          await at(rpc, 'before', request)
          const answer = await handle(request, context)
          await at(rpc, 'after', request)
          return answer
        },
      ]),
    ) as Handlers
  return serveCsi({
    socketPath,
    closeTimeoutMs: 100,
    identity: identity({ name: 'disk.example', version: '1.0.0', hasController: true }),
    controller: watched(controller(driver)),
    node: watched(node(driver)),
  })
}

/** A call about a volume, as the driver has got it. */
export interface WatchedCall {
  rpc: string
  volumeId: string
  path: string
}

/** Sees every call about a volume, and holds some of them. */
export class Gate {
  readonly calls: WatchedCall[] = []
  /** The most calls about one volume that were under way at the same time. */
  mostAtOnce = 0
  /** What this driver does besides, before it ends a publication. */
  beforeUnpublish: (path: string) => void = () => undefined
  readonly #underWay: string[] = []
  readonly #held = new Map<Point, { goOn: () => void; fail: (failure: Error) => void }>()
  #points: readonly Point[] = []
  #allAreHeld: () => void = () => undefined

  readonly at: WatchedInit['at'] = async (rpc, when, request) => {
    const { volume_id: volumeId = '', target_path, staging_target_path } = request
    if (volumeId === '') return
    if (when === 'before') {
      this.calls.push({ rpc, volumeId, path: target_path ?? staging_target_path ?? '' })
      this.#underWay.push(volumeId)
      this.mostAtOnce = Math.max(this.mostAtOnce, this.#underWay.filter((id) => id === volumeId).length)
    }
    if (when === 'before' && rpc === 'NodeUnpublishVolume') this.beforeUnpublish(target_path ?? '')
    const point = this.#points.find(isAt(rpc, when, request))
    if (point && !this.#held.has(point))
      await new Promise<void>((goOn, fail) => {
        this.#held.set(point, { goOn, fail })
        if (this.#held.size === this.#points.length) this.#allAreHeld()
      })
    if (when === 'after') this.#underWay.splice(this.#underWay.indexOf(volumeId), 1)
  }

  /** Resolves when something is held at each of the points. */
  hold(...points: Point[]): Promise<void> {
    this.#held.clear()
    this.#points = points
    return new Promise((resolve) => (this.#allAreHeld = resolve))
  }

  /** What is held goes on; or it fails, so that what it had not done yet is not done. */
  letGo({ failing = false } = {}): void {
    this.#points = []
    for (const { goOn, fail } of this.#held.values())
      if (failing) fail(new Error('nobody waits for this any more'))
      else goOn()
  }

  /** How often calls about volumes have come, by their names; those of `rpcs` alone. */
  count(...rpcs: string[]): number[] {
    return rpcs.map((rpc) => this.calls.filter((call) => call.rpc === rpc).length)
  }
}
