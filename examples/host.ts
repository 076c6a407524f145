// The host of the README, with the hostpath driver in the place of a real one:
//
//   node --import tsx/esm examples/host.ts [STATE_DIR]
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hostpathCommand } from './hostpath-driver/command.js'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-host-'))
const stateDir = process.argv.slice(2).find((word) => !word.startsWith('-')) ?? join(scratch, 'state')
const command = hostpathCommand({ 'state-dir': join(scratch, 'volumes') })

// README: from here
import { openHost, processDriver, runTasks } from 'plugstream'
import { of } from 'rxjs'

const driver = {
  allocId: 'ebs-1',
  taskName: 'driver',
  command,
  isolation: 'none',
  csiPlugin: { id: 'ebs', type: 'monolith' },
} as const
{
  await using host = await openHost({ stateDir, task$: (ports) => runTasks(of(driver), processDriver(), ports) })
  host.health$.subscribe((h) => console.log(h.plugin.name, h.plugin.type, h.healthy, h.reason))
  await host.waitFor('csi-node', 'ebs', { healthy: true, timeoutMs: 30_000 })
}
// README: to here
await rm(scratch, { recursive: true, force: true })
