// The CSI plugins that a Nomad agent runs, as task events: another source of the shape that `dockerTaskEvents` has.
//
//   NOMAD_ADDR=http://127.0.0.1:4646 node --import tsx/esm examples/nomad-events.ts
//
// Without NOMAD_ADDR a stand-in of the agent tells a short story: a plugin that runs, crashes and comes back, and is gone while nobody
// could listen. A host would take the events as `openHost({ stateDir, task$: event$ })`.
import { eachOf, taskEvents, type TaskLook, type TaskSight } from 'plugstream'
import { takeWhile } from 'rxjs'
import { startStandIn } from './nomad-events/stand-in.js'

/** Of Nomad's allocation, what is needed here. */
interface Allocation {
  ID: string
  TaskGroup: string
  DesiredStatus: string
  ClientStatus: string
  Job: { TaskGroups: { Name: string; Tasks: { Name: string; CSIPluginConfig?: PluginConfig | null }[] }[] }
  TaskStates: Record<string, TaskState> | null
}
interface PluginConfig {
  ID: string
  Type: 'controller' | 'node' | 'monolith'
}
interface TaskState {
  State: 'pending' | 'running' | 'dead'
  StartedAt: string | null
  Events: { Type: string; ExitCode: number }[]
}

/** Looks at the allocations of one node: at all of them, then at each of which the agent's event stream has a word. */
async function* looks(agent: string, signal: AbortSignal): AsyncGenerator<TaskLook> {
  const get = async <T>(path: string): Promise<T> => (await (await open(agent + path, signal)).json()) as T
  const { stats } = await get<{ stats: { client: { node_id: string } } }>('/v1/agent/self')
  const node = stats.client.node_id
  const stream = await open(`${agent}/v1/event/stream?topic=Allocation`, signal)
  const present = await get<Allocation[]>(`/v1/node/${node}/allocations`)
  yield { kind: 'all', sights: present.flatMap(sightsOf).flatMap(({ sight }) => sight ?? []) }
  for await (const { Events = [] } of messages(stream)) {
    for (const { Key } of Events) {
      // The job is not in the event, so that the allocation is asked for.
      for (const look of sightsOf(await get<Allocation>(`/v1/allocation/${Key}`))) yield { kind: 'one', ...look }
    }
  }
}

/** The plugin tasks of an allocation; one that is over has none that could run again. */
function sightsOf(allocation: Allocation): { id: string; sight: TaskSight | undefined }[] {
  const { ID, TaskGroup, DesiredStatus, ClientStatus, Job, TaskStates } = allocation
  const group = Job.TaskGroups.find(({ Name }) => Name === TaskGroup)
  return (group?.Tasks ?? []).flatMap(({ Name, CSIPluginConfig: plugin }) => {
    if (!plugin) return []
    const id = `${ID}/${Name}`
    if (['complete', 'failed', 'lost'].includes(ClientStatus)) return { id, sight: undefined }
    const { State = 'pending', StartedAt = '', Events = [] } = TaskStates?.[Name] ?? {}
    const code = Events.findLast(({ Type }) => Type === 'Terminated')?.ExitCode ?? null
    const sight: TaskSight = {
      id,
      task: { allocId: ID, taskName: Name, isolation: 'image', csiPlugin: { id: plugin.ID, type: plugin.Type } },
      running: State === 'running',
      stopping: DesiredStatus !== 'run',
      run: StartedAt ?? '',
      exit: { code, signal: null },
      restarts: DesiredStatus === 'run' && State === 'pending',
    }
    return { id, sight }
  })
}

async function open(url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal })
  if (!response.ok) throw new Error(`${url}: ${response.status}`)
  return response
}

/** One JSON value a line; `{}` says that the agent is there. */
async function* messages({ body }: Response): AsyncGenerator<{ Events?: { Key: string }[] }> {
  let rest = ''
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as { Events?: { Key: string }[] }
  }
}

const address = process.env['NOMAD_ADDR']
const standIn = address === undefined ? await startStandIn() : undefined
const agent = address ?? standIn?.address ?? ''
const event$ = taskEvents(eachOf((signal) => looks(agent, signal)))

// The stand-in has no more to tell then.
event$.pipe(takeWhile(({ kind }) => !standIn || kind !== 'stopped', true)).subscribe({
  next: (event) => {
    const { kind, task } = event
    const how = kind === 'exited' ? `code ${event.code}${event.willRestart ? ', comes back' : ''}` : ''
    const since = kind === 'started' && event.adopted ? 'before us' : ''
    console.log(kind, task.allocId, task.csiPlugin?.id, how || since)
    standIn?.goOn(kind)
  },
  complete: () => standIn?.close(),
})
