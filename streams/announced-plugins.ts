import {
  catchError,
  concat,
  connect,
  defaultIfEmpty,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  scan,
  startWith,
  switchMap,
  take,
  takeWhile,
  tap,
  timer,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { registrationGoneMs, type Timing } from '../lib/defaults.js'
import { messageOf, PlugstreamError } from '../lib/errors.js'
import {
  isSameNote,
  nameTaken,
  noteOf,
  noteOfUnseen,
  notReady,
  type AnnouncementNote,
  type AnnouncementVerdict,
} from '../lib/plugin/announcement-note.js'
import {
  readAnnouncement,
  registrationSocketOption,
  type Announcement,
  type RegistrarInfo,
  type RegistrarVerdict,
} from '../lib/plugin/announcement.js'
import { Holdings } from '../lib/plugin/holdings.js'
import type { PluginIdentity } from '../lib/plugin/kind.js'
import { NameHolders } from '../lib/plugin/name-holders.js'
import type { PluginInfo, PluginRef, RegistryChange } from '../lib/plugin/plugin.js'
import { socketChanges, type SocketChanges } from '../lib/plugin/socket-changes.js'
import type { DirectorySight } from '../lib/plugin/socket.js'
import { flowPerKey } from './operators/flow-per-key.js'
import { listen } from './operators/listen.js'
import { asked, telling } from './operators/registrar-calls.js'
import { retrySaying } from './operators/retry-saying.js'
import { retryStoreWrite } from './operators/retry-store-write.js'
import type { Connection, ConnectionState, ConnectionTarget } from './values.js'

export interface AnnouncementPorts {
  /** What was registered through the directory before, and is restored; one answer. */
  restored(): ObservableInput<readonly PluginInfo[]>
  /** Asks a registrar what it announces. */
  ask(socketPath: string): ObservableInput<RegistrarInfo>
  /** Tells it what became of that. */
  tell(socketPath: string, verdict: RegistrarVerdict): ObservableInput<unknown>
  /** What is known of the server behind a socket, present state first; shared by all who ask for one target. */
  connection(target: ConnectionTarget): ObservableInput<ConnectionState>
  /** Changes the registry: takes its place in the queue as it is subscribed, answers when saved. Unsubscribing loses the answer only. */
  apply(change: RegistryChange): ObservableInput<unknown>
  isRegistered(ref: PluginRef): boolean
}

type AnnouncementTiming = Pick<Timing, 'unhealthyBeatMs'>

/**
 * What is seen in a directory of registration sockets flows in; what became of each flows out, and the registry is changed through a port.
 *
 * The file is what counts: a driver is registered from when a registrar has announced it there and it is ready, until the file is gone.
 * In between the registrar may die and another take its place; what it said last holds until the next one has spoken. Whether the driver
 * is alive is for its health to say. It is registered as `csi-node`, with the path of the registration socket as its allocId.
 *
 * One flow a socket, so that none waits for another. Of several that announce one name, the first has it until its file is gone, or its
 * driver is when another's is ready. A source that ends or fails deregisters nothing.
 */
export function announcedPlugins(
  sight$: Observable<DirectorySight>,
  ports: AnnouncementPorts,
  timing: AnnouncementTiming,
): Observable<AnnouncementNote> {
  return defer(() => from(ports.restored())).pipe(
    take(1),
    catchError(() => of([])),
    switchMap((restored) => {
      const names = new NameHolders()
      const doors = new Map<string, Door>()
      const doorOf = (socketPath: string): Door => {
        const door = doors.get(socketPath) ?? {
          socketPath,
          names,
          ports,
          timing,
          holdings: new Holdings(),
          said: undefined,
        }
        doors.set(socketPath, door)
        return door
      }
      for (const plugin of restored) {
        const door = doorOf(plugin.allocId)
        names.take(plugin.name, plugin.allocId)
        names.confirm(plugin.name, plugin.allocId)
        door.holdings.hold(plugin)
        door.said = { name: plugin.name, endpoint: plugin.connection.socketPath }
      }
      // Of these it is on record what was announced there, and not which sockets they were.
      const known = new Map([...doors.keys()].map((socketPath) => [socketPath, '']))
      return concat(sight$.pipe(catchError(() => EMPTY)), NEVER).pipe(
        scan(socketChanges, { known, changes: [], unseen: [], newlyUnseen: [] } as SocketChanges),
        connect((seen$) =>
          merge(
            seen$.pipe(mergeMap(({ newlyUnseen }) => newlyUnseen.map(noteOfUnseen))),
            seen$.pipe(
              mergeMap(({ changes }) => changes),
              flowPerKey(
                ({ socketPath }) => socketPath,
                (change$, socketPath) =>
                  followed(change$, doorOf(socketPath)).pipe(finalize(() => doors.delete(socketPath))),
              ),
            ),
          ),
        ),
      )
    }),
  )
}

/** One registration socket, and what is known of it over all who serve it one after the other. */
interface Door {
  readonly socketPath: string
  readonly names: NameHolders
  readonly ports: AnnouncementPorts
  readonly timing: AnnouncementTiming
  readonly holdings: Holdings
  /** What was announced last. */
  said: Announcement | undefined
}

type SocketChange = SocketChanges['changes'][number]

/** What happens at one path, until no socket is there any more. */
function followed(change$: Observable<SocketChange>, door: Door): Observable<AnnouncementNote> {
  const { socketPath } = door
  const gone$ = timer(registrationGoneMs).pipe(
    switchMap(() =>
      concat(leave(door, 'its registration socket is gone'), of<AnnouncementNote>({ socketPath, kind: 'gone' })),
    ),
  )
  return change$.pipe(
    switchMap(({ identity }) => (identity === undefined ? gone$ : served(door))),
    distinctUntilChanged(isSameNote),
    takeWhile(({ kind }) => kind !== 'gone', true),
  )
}

/** Asks the registrar on the socket, and follows what it announces; until it has spoken, what was said before. */
function served(door: Door): Observable<AnnouncementNote> {
  const { socketPath, ports, said } = door
  return asked(() => ports.ask(socketPath)).pipe(
    connect((answer$) =>
      merge(
        answer$.pipe(
          filter((answer) => answer instanceof PlugstreamError),
          distinctUntilChanged((a, b) => a.message === b.message),
        ),
        answer$.pipe(
          filter((answer): answer is { info: RegistrarInfo } => !(answer instanceof PlugstreamError)),
          map(({ info }) => heard(door, info).pipe(telling((verdict) => ports.tell(socketPath, verdict)))),
          startWith(said ? judged(door, said) : EMPTY),
          switchMap((verdict$) => verdict$),
        ),
      ),
    ),
    map((verdict) => noteOf(socketPath, verdict)),
  )
}

function heard(door: Door, info: RegistrarInfo): Observable<AnnouncementVerdict> {
  try {
    door.said = readAnnouncement(info, door.socketPath)
    return judged(door, door.said)
  } catch (thrown) {
    door.said = undefined
    const failure = PlugstreamError.from(thrown, 'ERR_USAGE', `reading what ${door.socketPath} announces`)
    return merge(leave(door, failure.message), of(failure))
  }
}

/** Follows the driver that was announced, and registers it when it is ready. */
function judged(door: Door, announcement: Announcement): Observable<AnnouncementVerdict> {
  const { ports, timing } = door
  const ref = refOf(door, announcement)
  const driver$ = defer(() => ports.connection({ type, socketPath: announcement.endpoint, run: 0 })).pipe(
    retrySaying(broken, () => timing.unhealthyBeatMs),
    switchMap((state) =>
      state.healthy && state.connection
        ? identified(door, announcement, state.connection)
        : missed(door, announcement, state),
    ),
  )
  return concat(leave(door, 'another driver was announced in its place', [ref]), driver$)
}

/** A driver that is ready: is it the one that was announced? */
function identified(door: Door, announcement: Announcement, connection: Connection): Observable<AnnouncementVerdict> {
  return defer(() => connection.identify()).pipe(
    take(1),
    map((identity) =>
      identity.provider === announcement.name
        ? named(door, announcement, identity)
        : of(notReady(announcement, `calls itself ${JSON.stringify(identity.provider)}`)),
    ),
    retrySaying(
      (failure) => of(notReady(announcement, `does not say who it is: ${messageOf(failure)}`)),
      () => door.timing.unhealthyBeatMs,
    ),
    switchMap((verdict$) => verdict$),
  )
}

/** Registers it as soon as its name can be had. */
function named(
  door: Door,
  announcement: Announcement,
  identity: Partial<PluginIdentity>,
): Observable<AnnouncementVerdict> {
  const { socketPath, names } = door
  const { name } = announcement
  const taken$ = changesOf(name, names).pipe(
    map(() => names.take(name, socketPath)),
    takeWhile((holder) => holder !== socketPath, true),
    distinctUntilChanged(),
    switchMap((holder) =>
      holder === socketPath ? registered(door, announcement, identity) : lost(door, announcement, holder),
    ),
  )
  // What is still to be deregistered is, before its name is taken again.
  return concat(leave(door, 'another driver was announced in its place', [refOf(door, announcement)]), taken$)
}

function registered(
  door: Door,
  announcement: Announcement,
  identity: Partial<PluginIdentity>,
): Observable<AnnouncementVerdict> {
  const { socketPath, names, holdings, ports } = door
  const ref = refOf(door, announcement)
  const connection = { socketPath: announcement.endpoint }
  const plugin = { ...ref, ...identity, connection, options: { [registrationSocketOption]: socketPath } }
  return defer(() => {
    holdings.hold(ref)
    return applied({ kind: 'register', plugin }, ports)
  }).pipe(
    map(() => {
      names.confirm(ref.name, socketPath)
      return ref
    }),
    catchError((failure: unknown) => {
      names.leave(ref.name, socketPath)
      return of(PlugstreamError.from(failure, 'ERR_USAGE', `registering ${ref.name}`))
    }),
  )
}

/** A driver that is not there, or not ready: one that is registered stays so, unless another comes that has its name and is ready. */
function missed(
  door: Door,
  announcement: Announcement,
  { reason, description }: ConnectionState,
): Observable<AnnouncementVerdict> {
  const { socketPath, names, ports } = door
  const { name } = announcement
  return defer(() => {
    names.doubt(name, socketPath)
    return changesOf(name, names)
  }).pipe(
    map(() => names.holder(name) ?? socketPath),
    distinctUntilChanged(),
    switchMap((holder) => {
      if (holder !== socketPath) return lost(door, announcement, holder)
      const isWaitedFor = reason === 'not-ready' || reason === 'socket-replaced'
      if (isWaitedFor || ports.isRegistered(refOf(door, announcement))) return EMPTY
      return of(notReady(announcement, `does not answer: ${description}`))
    }),
  )
}

/** Another has its name. */
function lost(door: Door, announcement: Announcement, holder: string): Observable<AnnouncementVerdict> {
  return merge(leave(door, `its name was taken by ${holder}`), of(nameTaken(announcement, holder)))
}

/** Deregisters what was announced here, except what is in `keep`. */
function leave(
  { socketPath, holdings, names, ports }: Door,
  reason: string,
  keep?: readonly PluginRef[],
): Observable<never> {
  return defer(() => {
    holdings.leave([], reason, keep)
    return holdings.leaving
  }).pipe(
    mergeMap((change) =>
      applied(change, ports).pipe(
        catchError(() => of(undefined)), // refused for good: the registry closes
        tap(() => {
          holdings.left(change.ref)
          names.leave(change.ref.name, socketPath)
        }),
      ),
    ),
    ignoreElements(),
  )
}

/** The name now, and whenever it changes who has it, or may. */
function changesOf(name: string, names: NameHolders): Observable<string> {
  return listen<string>((listener) => names.onChange(listener)).pipe(
    startWith(name),
    filter((changed) => changed === name),
  )
}

/** A change, made again for as long as the store cannot save it. One answer, and complete. */
function applied(change: RegistryChange, ports: AnnouncementPorts): Observable<unknown> {
  return defer(() => ports.apply(change)).pipe(take(1), defaultIfEmpty(undefined), retryStoreWrite())
}

const type = 'csi-node'

function refOf({ socketPath }: Door, { name }: Announcement): PluginRef {
  return { type, name, allocId: socketPath }
}

/** A watch that fails as such. */
function broken(failure: unknown): ConnectionState {
  const description = messageOf(failure)
  return { healthy: false, reason: 'disconnected', description, answers: false, epoch: 0, connection: undefined }
}
