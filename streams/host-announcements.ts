import { EMPTY, filter, map, switchMap, take, type Observable } from 'rxjs'
import { askRegistrar, tellRegistrar } from '../lib/csi/registrar.js'
import type { Timing } from '../lib/defaults.js'
import type { AnnouncementNote } from '../lib/plugin/announcement-note.js'
import { registrationSocketOption } from '../lib/plugin/announcement.js'
import type { PluginInfo } from '../lib/plugin/plugin.js'
import { watchSockets } from '../lib/plugin/socket-directory.js'
import type { DirectorySight } from '../lib/plugin/socket.js'
import type { Unfinished } from '../lib/unfinished.js'
import { announcedPlugins, type AnnouncementPorts } from './announced-plugins.js'
import { abortable } from './operators/abortable.js'
import { listen } from './operators/listen.js'
import { presentState, type PresentState } from './present-state.js'
import type { Registry } from './registry.js'
import type { TaskState } from './values.js'

/** What the announcements of a host stand on. */
export interface AnnouncementsInit extends Pick<AnnouncementPorts, 'connection' | 'apply'> {
  /** Absolute; none: nothing is announced. */
  directory: string | undefined
  registry: Registry
  /** Nothing begins before. */
  opened$: Observable<unknown>
  unfinished: Unfinished
  timing: Timing
}

/** Takes in what is announced in a directory of registration sockets. */
export function openAnnouncements(init: AnnouncementsInit): {
  notes: PresentState<AnnouncementNote>
  /** Of an instance that was announced no task will tell: it counts as claimed when this host has heard of it. */
  claimed: (plugin: PluginInfo) => Observable<TaskState>
} {
  const { directory, registry, opened$, unfinished, timing, connection, apply } = init
  const work = <T>(call: (options: { signal: AbortSignal; timeoutMs: number }) => Promise<T>): Observable<T> =>
    abortable((signal) => {
      const answer = call({ signal, timeoutMs: timing.rpcTimeoutMs })
      unfinished.add(answer)
      return answer
    })
  const note$ =
    directory === undefined
      ? EMPTY
      : announcedPlugins(
          opened$.pipe(switchMap(() => listen<DirectorySight>((listener) => watchSockets(directory, listener)))),
          {
            restored: () =>
              registry.plugins$.pipe(
                take(1),
                map((plugins) => plugins.filter(isAnnounced)),
              ),
            ask: (socketPath) => work((options) => askRegistrar(socketPath, options)),
            tell: (socketPath, verdict) => work((options) => tellRegistrar(socketPath, verdict, options)),
            connection,
            apply,
            isRegistered: (ref) => registry.get(ref) !== undefined,
          },
          timing,
        )
  const notes = presentState(
    note$,
    ({ socketPath }) => socketPath,
    ({ kind }) => kind === 'gone',
  )
  const claimed = ({ allocId }: PluginInfo): Observable<TaskState> =>
    notes.of(allocId).pipe(
      filter(({ kind }) => kind === 'registered'),
      map(() => ({ phase: 'running', run: 0, description: 'its registrar has announced it' })),
    )
  return { notes, claimed }
}

function isAnnounced({ allocId, options }: PluginInfo): boolean {
  return options[registrationSocketOption] === allocId
}
