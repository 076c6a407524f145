import { asyncScheduler, defer, map, type Observable } from 'rxjs'
import { PlugstreamError } from '../../lib/errors.js'
import type { AnnouncementNote } from '../../lib/plugin/announcement-note.js'
import type { RegistrarInfo } from '../../lib/plugin/announcement.js'
import { instanceKey, type PluginInfo, type RegistryChange } from '../../lib/plugin/plugin.js'
import type { DirectorySight } from '../../lib/plugin/socket.js'
import { announcedPlugins, type AnnouncementPorts } from '../../streams/announced-plugins.js'
import type { ConnectionState } from '../../streams/values.js'
import type { MarbleHelpers } from '../testing/marbles.js'
import { fakeConnection } from './support/connection.js'
import { connectionState, nobodyThere, pluginInfo } from './support/values.js'

/** What is seen, by letter: one socket `a` or `b` or both (`d`), none (`0`), another one in the place of `a` (`A`), nothing at all (`u`). */
export const sights: Record<string, DirectorySight> = {
  0: { sockets: [], unseen: [] },
  a: { sockets: [{ socketPath: '/r/a', identity: '1' }], unseen: [] },
  A: { sockets: [{ socketPath: '/r/a', identity: '2' }], unseen: [] },
  b: { sockets: [{ socketPath: '/r/b', identity: '1' }], unseen: [] },
  d: { sockets: ['/r/a', '/r/b'].map((socketPath) => ({ socketPath, identity: '1' })), unseen: [] },
  u: { sockets: [], unseen: [{ path: '/r', description: 'EMFILE' }] },
}

/** What registrars answer: the driver `ebs.csi`, one of another name, what cannot be registered. */
const infos: Record<string, RegistrarInfo> = {
  e: { type: 'CSIPlugin', name: 'ebs.csi', endpoint: '/e', supportedVersions: ['1.0.0'] },
  f: { type: 'CSIPlugin', name: 'ebs.csi', endpoint: '/f', supportedVersions: ['1.0.0'] },
  o: { type: 'CSIPlugin', name: 'other.csi', endpoint: '/o', supportedVersions: ['1.0.0'] },
  x: { type: 'DevicePlugin', name: 'ebs.csi', endpoint: '/e', supportedVersions: ['1.0.0'] },
}

/** What is known of a driver: healthy, missing, not ready, replaced. */
const stateOf = (provider: string): Record<string, ConnectionState> => {
  const connection = fakeConnection({ identify: () => [{ provider, version: '1.0.0' }] })
  return {
    h: connectionState({ connection }),
    m: nobodyThere(),
    n: nobodyThere({ reason: 'not-ready', answers: true }),
    r: nobodyThere({ reason: 'socket-replaced' }),
  }
}

const dead = new PlugstreamError('ERR_SOCKET', 'nobody listens')
const mute = new PlugstreamError('ERR_SOCKET', 'it does not answer', { retryable: true })
const storeDown = new PlugstreamError('ERR_STORE_WRITE', 'the disk is full')

interface Script {
  /** What is restored. */
  restored?: readonly PluginInfo[]
  /** By socket: what each question comes to, in order, the last one again for more. `#`: nobody listens, `!`: no answer. Default: `(e|)`. */
  asks?: Readonly<Record<string, readonly string[]>>
  /** By endpoint: what is known of the driver. Default: healthy. */
  drivers?: Readonly<Record<string, string>>
  /** By endpoint: what the driver calls itself. Default: as it is announced. */
  providers?: Readonly<Record<string, string>>
  /** What each change comes to, in order; the last one again for more. `#`: the store is down. Default: saved. */
  applies?: readonly string[]
  /** What each telling comes to, likewise; `!`: no answer. */
  tells?: readonly string[]
  ports?: Partial<AnnouncementPorts>
}

/** A registry, registrars and drivers, and a log of what was done with them: when, and what. */
export class World {
  readonly log: string[] = []
  /** When which registrar was asked. */
  readonly asked: string[] = []
  readonly #registered = new Set<string>()
  readonly #script: Script
  #applied = 0
  #told = 0

  constructor(
    private readonly helpers: MarbleHelpers,
    script: Script = {},
  ) {
    this.#script = script
    for (const plugin of script.restored ?? []) this.#registered.add(instanceKey(plugin))
  }

  /** What comes out, in words. */
  announced(sight$: Observable<DirectorySight>): Observable<string> {
    const { restored = [], asks = {}, drivers = {}, providers = {}, applies, tells, ports } = this.#script
    const { cold } = this.helpers
    const answer = (marbles: string): Observable<string> =>
      cold(marbles.replace('!', '#'), undefined, failureOf(marbles))
    const all: AnnouncementPorts = {
      restored: () => [restored],
      ask: (socketPath) =>
        defer(() => {
          const before = this.asked.filter((line) => line.endsWith(socketPath)).length
          this.asked.push(`${asyncScheduler.now()} ${socketPath}`)
          return answer(nth(asks[socketPath], before) ?? '(e|)').pipe(map((letter) => infos[letter] as RegistrarInfo))
        }),
      tell: (socketPath, verdict) =>
        defer(() => {
          this.#say(`tell ${socketPath} ${verdict.registered ? 'yes' : verdict.error}`)
          return answer(nth(tells, this.#told++) ?? '(s|)')
        }),
      connection: ({ socketPath }) => {
        const provider = providers[socketPath] ?? (socketPath === '/o' ? 'other.csi' : 'ebs.csi')
        return cold(drivers[socketPath] ?? 'h', stateOf(provider))
      },
      apply: (change) =>
        defer(() => {
          this.#say(wordsOf(change))
          return cold(nth(applies, this.#applied++) ?? '(s|)', undefined, storeDown).pipe(
            map(() => this.#apply(change)),
          )
        }),
      isRegistered: (ref) => this.#registered.has(instanceKey(ref)),
      ...ports,
    }
    return announcedPlugins(sight$, all, { unhealthyBeatMs: 1_000 }).pipe(map(noteInWords))
  }

  #apply(change: RegistryChange): void {
    if (change.kind === 'register') this.#registered.add(instanceKey(change.plugin))
    if (change.kind === 'deregister') this.#registered.delete(instanceKey(change.ref))
  }

  #say(what: string): void {
    this.log.push(`${asyncScheduler.now()} ${what}`)
  }
}

/** An instance that was announced over `/r/a` or another socket. */
export function announcedInfo(allocId = '/r/a', overrides: Partial<PluginInfo> = {}): PluginInfo {
  const options = { registrationSocket: allocId }
  return pluginInfo({ name: 'ebs.csi', allocId, connection: { socketPath: '/e' }, options, ...overrides })
}

function wordsOf(change: RegistryChange): string {
  if (change.kind === 'deregister') return `deregister ${change.ref.name} ${change.ref.allocId} (${change.reason})`
  if (change.kind === 'update') return 'update'
  const { name, allocId, connection } = change.plugin
  return `register ${name} ${allocId} at ${connection.socketPath}`
}

function noteInWords(note: AnnouncementNote): string {
  if (note.kind === 'failed') return `${note.socketPath} ${note.failure.code}`
  return `${note.socketPath} ${note.kind}`
}

function failureOf(marbles: string): PlugstreamError {
  return marbles.includes('!') ? mute : dead
}

function nth<T>(list: readonly T[] | undefined, index: number): T | undefined {
  return list?.[Math.min(index, list.length - 1)]
}
