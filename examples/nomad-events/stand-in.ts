import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What happens next once something was told; and it breaks off the stream before the last, which has to be made up for. */
const story: Record<string, { change: object; breaks?: boolean }[]> = {
  started: [
    { change: { State: 'pending', Events: [{ Type: 'Terminated', ExitCode: 2 }] } },
    { change: { over: true }, breaks: true },
  ],
  exited: [{ change: { State: 'running', StartedAt: '2030-01-01T00:00:07Z' } }],
}

/** As much of a Nomad agent as the example asks for: one allocation, and what becomes of it. */
export async function startStandIn() {
  let task = { State: 'running', StartedAt: '2030-01-01T00:00:00Z', Events: [] as object[], over: false }
  let stream: ServerResponse | undefined
  const allocation = () => ({
    ID: 'b7c1',
    TaskGroup: 'storage',
    DesiredStatus: 'run',
    ClientStatus: task.over ? 'complete' : 'running',
    Job: {
      TaskGroups: [{ Name: 'storage', Tasks: [{ Name: 'driver', CSIPluginConfig: { ID: 'ebs', Type: 'node' } }] }],
    },
    TaskStates: { driver: task },
  })
  const answers: Record<string, () => unknown> = {
    '/v1/agent/self': () => ({ stats: { client: { node_id: 'here' } } }),
    '/v1/node/here/allocations': () => [allocation()],
    '/v1/allocation/b7c1': allocation,
  }
  const server = createServer(({ url = '' }, response) => {
    if (!url.startsWith('/v1/event/stream')) return response.end(JSON.stringify(answers[url]?.()))
    stream = response
    return response.write('{}\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Tells what comes after an event of that kind. */
    goOn(told: string): void {
      const next = story[told]?.shift()
      if (!next) return
      task = { ...task, ...next.change }
      if (next.breaks) stream?.destroy()
      else stream?.write(`${JSON.stringify({ Events: [{ Key: 'b7c1' }] })}\n`)
    },
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  }
}
