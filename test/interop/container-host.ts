// A host whose task runs in a container, as a process that can be killed: `container-host.ts <stateDir> <engine socket> <log directory> <task>`.
import Dockerode from 'dockerode'
import { of, tap } from 'rxjs'
import { dockerDriver, type ContainerTask } from '../../streams/docker.js'
import { openHost } from '../../streams/host.js'
import { runTasks } from '../../streams/run-tasks.js'

const [stateDir = '', socketPath = '', logDir = '', task = ''] = process.argv.slice(2)
const driver = dockerDriver({ hostId: stateDir, docker: new Dockerode({ socketPath }), logDir })
const host = await openHost({
  stateDir,
  task$: (ports) =>
    runTasks(of(JSON.parse(task) as ContainerTask), driver, ports).pipe(
      tap((event) => event.kind === 'started' && process.stdout.write(`${event.pid}\n`)),
    ),
})
await host.waitFor('csi-node', 'files', { healthy: true })
process.stdout.write('healthy\n')
