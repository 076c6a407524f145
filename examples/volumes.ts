// A volume from its making to its deletion: `node --import tsx/esm examples/volumes.ts`.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHost, processDriver, runTasks, type VolumeAccess } from 'plugstream'
import { of } from 'rxjs'
import { hostpathCommand } from './hostpath-driver/command.js'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-volumes-'))
const disk = {
  allocId: 'disk-1',
  taskName: 'driver',
  command: hostpathCommand({ name: 'disk', 'node-id': 'here', 'state-dir': join(scratch, 'disk') }),
  isolation: 'none',
  csiPlugin: { id: 'disk', type: 'monolith' },
} as const
{
  await using host = await openHost({
    stateDir: join(scratch, 'state'),
    task$: (ports) => runTasks(of(disk), processDriver(), ports),
  })
  host.volumes.event$.subscribe(({ kind, message }) => console.log(kind, message))
  await host.waitFor('csi-controller', 'disk', { healthy: true, timeoutMs: 30_000 })

  // README: from here
  const access: VolumeAccess = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' }
  const { volume } = await host.volumes.create({ plugin: 'disk', name: 'data', volumeCapabilities: [access] })
  const { volumeId, volumeContext } = volume
  {
    await using data = await host.volumes.mount({ plugin: 'disk', volumeId, volumeContext, allocId: 'web-1', access })
    await writeFile(join(data.path, 'hello'), 'world')
    console.log(await host.volumes.health({ plugin: 'disk', volumeId }))
  } // unmounted here
  await host.volumes.delete({ plugin: 'disk', volumeId })
  // README: to here
}
await rm(scratch, { recursive: true })
