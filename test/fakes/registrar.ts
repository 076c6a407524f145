import { once } from 'node:events'
import { renameSync, rmSync } from 'node:fs'
import { createServer, type Server as Listener, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js'
import { registrationProto } from '../../lib/csi/proto.js'
import type { RegistrarInfo, RegistrarVerdict } from '../../lib/plugin/announcement.js'

/** What a registrar announces, beside what every one of a CSI driver does. */
export type Announced = Partial<RegistrarInfo> & { name: string }

/** What a registrar does differently. */
export interface RegistrarQuirks {
  /** GetInfo is not answered for as long as this has not resolved. */
  until?: Promise<unknown>
  /** It serves something else. */
  isOther?: boolean
  /** What it does when it hears that its plugin is not registered. Default: as the Go registrar does, it ends and leaves its socket. */
  stays?: boolean
}

/**
 * A registrar as `node-driver-registrar` is one, in this process: it removes what is on its path, serves there, and ends in the middle of
 * the call when it is told that its plugin is not registered.
 */
export class Registrar implements AsyncDisposable {
  /** What it was told, oldest first. */
  readonly verdicts: RegistrarVerdict[] = []
  asked = 0
  readonly #connections = new Set<Socket>()
  readonly #listeners = new Set<() => void>()
  readonly #listener: Listener
  readonly #server: Server
  #ended: Promise<unknown> | undefined

  private constructor(
    readonly socketPath: string,
    private readonly announced: Announced,
    private readonly quirks: RegistrarQuirks,
  ) {
    this.#server = this.#serve()
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure())
    this.#listener = createServer((connection) => {
      this.#connections.add(connection)
      connection.on('error', () => undefined).once('close', () => this.#connections.delete(connection))
      injector.injectConnection(connection)
    })
  }

  static async start(socketPath: string, announced: Announced, quirks: RegistrarQuirks = {}): Promise<Registrar> {
    const registrar = new Registrar(socketPath, announced, quirks)
    // Bound under a name that nobody looks at, or Node would remove the socket at its end.
    const boundPath = join(dirname(socketPath), `.${basename(socketPath).slice(0, 8)}`)
    registrar.#listener.listen(boundPath)
    await once(registrar.#listener, 'listening')
    rmSync(socketPath, { force: true })
    renameSync(boundPath, socketPath)
    return registrar
  }

  /** Resolves when it was told so many verdicts. */
  async told(count = 1): Promise<RegistrarVerdict> {
    for (;;) {
      const verdict = this.verdicts[count - 1]
      if (verdict) return verdict
      await new Promise<void>((resolve) => this.#listeners.add(resolve))
    }
  }

  /** As SIGTERM: removes its socket and ends. */
  async stop(): Promise<void> {
    rmSync(this.socketPath, { force: true })
    await this.kill()
  }

  /** As SIGKILL: its socket stays behind. */
  async kill(): Promise<void> {
    if (!this.#ended) {
      this.#ended = once(this.#listener, 'close')
      this.#listener.close()
      this.#server.forceShutdown()
      for (const connection of this.#connections) connection.destroy()
    }
    await this.#ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }

  #serve(): Server {
    const server = new Server()
    if (this.quirks.isOther) return server
    const { type = 'CSIPlugin', endpoint = '', supportedVersions = ['1.0.0'], name } = this.announced
    server.addService(registrationProto().Registration.service, {
      GetInfo: (_: unknown, answer: sendUnaryData<object>) => {
        this.asked++
        void Promise.resolve(this.quirks.until).then(() =>
          answer(null, { type, name, endpoint, supported_versions: supportedVersions }),
        )
      },
      NotifyRegistrationStatus: (
        { request }: ServerUnaryCall<{ plugin_registered: boolean; error: string }, object>,
        answer: sendUnaryData<object>,
      ) => {
        const { plugin_registered: registered, error } = request
        this.verdicts.push(registered ? { registered } : { registered, error })
        if (registered || this.quirks.stays) answer(null, {})
        else void this.kill()
        for (const heard of this.#listeners) heard()
        this.#listeners.clear()
      },
    })
    return server
  }
}
