// How the tour speaks: a line for each thing it is told, with the milliseconds since it began.
import type { NodeSnapshot, PluginHost, TaskEvent } from 'plugstream'
import { filter, type Observable, type Subscription } from 'rxjs'

const beganAt = performance.now()

export function say(noun: string, line: string): void {
  const ms = (performance.now() - beganAt).toFixed(0).padStart(7)
  console.log(`${ms} ms  ${noun.padEnd(12)}${line}`)
}

export function chapter(title: string): void {
  console.log(`\n── ${title} ${'─'.repeat(Math.max(2, 96 - title.length))}`)
}

/** A line for everything a host tells. */
export function narrate({ registry, volumes, health$, fingerprint$, note$, problem$ }: PluginHost): void {
  registry.watch$.subscribe(({ kind, plugin, current, seq, restored }) => {
    const { type, name, allocId, version } = plugin
    const how = restored ? 'restored' : kind
    say('registry', `#${seq} ${allocId} ${how} as ${type} ${name} ${version}; current is ${current?.allocId ?? 'none'}`)
  })
  health$.subscribe(({ plugin: { allocId, type }, healthy, reason, description }) => {
    say('health', `${allocId} ${type} is ${healthy ? 'healthy' : `unhealthy: ${reason}, ${description}`}`)
  })
  fingerprint$.pipe(filter(({ healthy }) => healthy)).subscribe(({ plugin: { allocId, type }, controller, node }) => {
    const names = [...(controller?.names ?? []), ...(node?.names ?? [])]
    const some = `${names.slice(0, 3).join(' ')} and ${names.length - 3} more`
    say('fingerprint', `${allocId} ${type}${node ? `, node id ${node.id}` : ''}: ${some}`)
  })
  volumes.event$.subscribe(({ kind, volumeId, allocId, message }) => {
    say('volume', `${kind} ${allocId === undefined ? '' : `${volumeId} for ${allocId}: `}${message}`)
  })
  note$.subscribe(({ task, kind, message }) => say('note', `${task.allocId} ${kind}: ${message}`))
  problem$.subscribe(({ code, message }) => say('problem', `${code} ${message}`))
}

/** A line for everything that happens to the tasks. */
export function narrateTasks(taskEvent$: Observable<TaskEvent>): Subscription {
  return taskEvent$.subscribe((event) => {
    const more =
      event.kind === 'started'
        ? `, pid ${event.pid}`
        : event.kind === 'exited'
          ? ` by ${event.signal ?? `code ${event.code}`}`
          : ''
    say('task', `${event.task.allocId} ${event.kind}${more}`)
  })
}

/** What the node is, one line an instance. */
export function table({ instances }: NodeSnapshot): void {
  const row = (cells: readonly string[]): void =>
    console.log(`  ${cells.map((cell) => cell.padEnd(16)).join('')}`.trimEnd())
  row(['plugin', 'type', 'alloc', 'version', 'current', 'health', 'capabilities'])
  for (const { plugin, current, health, fingerprint } of instances) {
    const count = (fingerprint?.controller?.names.length ?? 0) + (fingerprint?.node?.names.length ?? 0)
    row([
      plugin.name,
      plugin.type,
      plugin.allocId,
      plugin.version,
      current ? 'current' : '',
      health.reason,
      String(count),
    ])
  }
}

/** Measures how long things take, for the table at the end. */
export class Stopwatch {
  readonly #laps: { what: string; ms: number }[] = []

  /** Starts to measure; the function it gives back ends that. */
  lap(what: string): () => void {
    const startedAt = performance.now()
    return () => void this.#laps.push({ what, ms: performance.now() - startedAt })
  }

  print(): void {
    console.log('')
    for (const { what, ms } of this.#laps) console.log(`  ${what.padEnd(52)}${ms.toFixed(1).padStart(8)} ms`)
  }
}
