import { once } from 'node:events'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

const ociManifest = 'application/vnd.oci.image.manifest.v1+json'

/** As much of a registry as a pull asks for: one image, from a directory that `podman push … dir:` has written. */
export class ImageRegistry implements AsyncDisposable {
  readonly #server = createServer(({ url = '' }, response) => {
    const [, kind, reference = ''] = /^\/v2\/.+\/(manifests|blobs)\/(.+)$/.exec(url) ?? []
    const file = join(this.directory, kind === 'blobs' ? reference.replace('sha256:', '') : 'manifest.json')
    if (url === '/v2/') return response.end()
    if (kind === undefined || !existsSync(file)) return response.writeHead(404).end()
    if (kind === 'blobs') return createReadStream(file).pipe(response)
    const { mediaType = ociManifest } = JSON.parse(readFileSync(file, 'utf8')) as { mediaType?: string }
    return response.setHeader('content-type', mediaType).end(readFileSync(file))
  })

  constructor(private readonly directory: string) {}

  /** Resolves to its host and port. */
  async serve(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
