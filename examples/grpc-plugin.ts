// Any gRPC server with grpc.health.v1 as a plugin: registered once it serves, its health known at once, called by any client.
//
//   node --import tsx/esm examples/grpc-plugin.ts
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openHost, processDriver, runTasks, type GrpcClient } from 'plugstream'
import { filter, firstValueFrom, of, tap } from 'rxjs'
import { ClockClient } from './grpc-plugin/clock.js'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-grpc-'))
const program = fileURLToPath(new URL('grpc-plugin/server.ts', import.meta.url))
let pid = 0

const server = {
  allocId: 'clock-1',
  taskName: 'server',
  command: [process.execPath, '--import', 'tsx/esm', program],
  isolation: 'none',
  plugin: { kind: 'grpc', id: 'clock', version: '1.0.0' },
} as const
{
  await using host = await openHost({
    stateDir: join(scratch, 'state'),
    task$: (ports) =>
      runTasks(of(server), processDriver(), ports).pipe(
        tap((event) => {
          if (event.kind === 'started') pid = event.pid ?? 0
        }),
      ),
  })
  const said = (reason: string): Promise<unknown> =>
    firstValueFrom(host.health$.pipe(filter((event) => event.reason === reason)))
  host.health$.subscribe(({ plugin, reason, description }) => console.log(plugin.name, reason, `(${description})`))

  const { version } = await host.waitFor('grpc', 'clock', { healthy: true, timeoutMs: 30_000 })
  const clock = host.client<GrpcClient>('grpc', 'clock').makeClient(ClockClient)
  console.log('clock', version, 'says', await clock.now())

  process.kill(pid, 'SIGUSR2') // it says of itself that it serves no more
  await said('not-ready')
  process.kill(pid, 'SIGUSR1')
  await said('ready')
}
await rm(scratch, { recursive: true, force: true })
