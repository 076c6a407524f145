// A CSI driver in a container, whose mounts its host sees. The container outlives the host, and the next host takes it over.
//
//   node --import tsx/esm examples/containers.ts
//
// Needs an engine (`DOCKER_HOST`, else /var/run/docker.sock), root, and a directory for temporary files on a shared mount, as any is where
// systemd runs. `IMAGE` has Node and mount.
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openHost, runTasks } from 'plugstream'
import { dockerDriver, type ContainerTask } from 'plugstream/docker'
import { of, tap } from 'rxjs'
import { hostpathCommand } from './hostpath-driver/command.js'

const scratch = await realpath(await mkdtemp(join(tmpdir(), 'plugstream-containers-')))
const stateDir = join(scratch, 'state')
const volumes = join(scratch, 'volumes')
await mkdir(volumes)
const sources = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

const driver = dockerDriver({ hostId: stateDir, logDir: join(scratch, 'logs') })
const [, ...args] = hostpathCommand({ name: 'files', 'node-id': 'here', 'state-dir': volumes })
const task: ContainerTask = {
  allocId: 'files-1',
  taskName: 'driver',
  isolation: 'image',
  command: ['node', ...args],
  cwd: sources,
  csiPlugin: { id: 'files', type: 'monolith' },
  restart: { mode: 'never' },
  container: {
    image: process.env['IMAGE'] ?? 'docker.io/library/node:22',
    network: 'none',
    privileged: true, // it mounts
    mounts: [
      { hostPath: sources, taskPath: sources, readonly: true, propagation: 'private' },
      { hostPath: volumes, taskPath: volumes, readonly: false, propagation: 'private' },
    ],
  },
}

async function inHost(onClose: 'stop' | 'keep', work: (host: Awaited<ReturnType<typeof openHost>>) => Promise<void>) {
  await using host = await openHost({
    stateDir,
    task$: (ports) =>
      runTasks(of(task), driver, ports, { onClose }).pipe(
        tap((event) => console.log(event.kind, 'pid' in event ? event.pid : '', 'reason' in event ? event.reason : '')),
      ),
  })
  await host.waitFor('csi-node', 'files', { healthy: true, timeoutMs: 60_000 })
  await work(host)
}

try {
  await driver.collect([task]) // what an earlier host may have left
  const data = { plugin: 'files', allocId: 'web-1' }
  let volumeId = ''
  await inHost('keep', async ({ volumes }) => {
    const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
    const { volume } = await volumes.create({ plugin: 'files', name: 'data', volumeCapabilities: [access] })
    volumeId = volume.volumeId
    const { path } = await volumes.mount({ ...data, volumeId })
    await writeFile(join(path, 'note'), 'written by the first host')
    console.log('mounted in the container, seen here:', path)
  })
  await inHost('stop', async ({ volumes }) => {
    const { path } = await volumes.mount({ ...data, volumeId })
    console.log('the next host reads:', await readFile(join(path, 'note'), 'utf8'))
    await volumes.unmount({ ...data, volumeId })
    await volumes.delete({ plugin: 'files', volumeId })
  })
} catch (failure) {
  console.log('no containers here:', failure instanceof Error ? failure.message : failure)
} finally {
  await driver.collect([]).catch(() => undefined)
  await rm(scratch, { recursive: true })
}
