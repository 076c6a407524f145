import { once } from 'node:events'
import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'

/** A directory of a test's own, which others may look into; gone after it. */
export class Scratch implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'ps-'))

  constructor() {
    chmodSync(this.path, 0o755)
  }

  file(name: string): string {
    return join(this.path, name)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** A server that counts connections and the ends of them. Closing it removes its socket, as Node does. */
export class PlainServer implements AsyncDisposable {
  readonly server: Server
  accepted = 0
  open = 0

  private constructor() {
    this.server = createServer((socket) => {
      this.accepted++
      this.open++
      socket.on('error', () => undefined).on('close', () => this.open--)
      socket.resume()
    })
  }

  static async listen(path: string): Promise<PlainServer> {
    const plain = new PlainServer()
    plain.server.listen(path)
    await once(plain.server, 'listening')
    return plain
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.server.listening) return
    this.server.close()
    await once(this.server, 'close')
  }
}

/** A socket that nobody listens on, as a process leaves one behind that was killed. */
export async function staleSocket(path: string): Promise<void> {
  const server = await PlainServer.listen(`${path}.b`)
  renameSync(`${path}.b`, path)
  await server[Symbol.asyncDispose]()
}

/** Waits until a file made now is younger than `path`: the clock of a file system moves in steps. */
export async function youngerThan(path: string): Promise<void> {
  const before = statSync(path, { bigint: true }).birthtimeNs
  const probe = join(dirname(path), 'clock')
  for (;;) {
    writeFileSync(probe, '')
    const now = statSync(probe, { bigint: true }).birthtimeNs
    unlinkSync(probe)
    if (now !== before || before === 0n) return
    await turn()
  }
}

/** Runs `work` as a user that has no rights of root; as root, that is nobody. */
export async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}
