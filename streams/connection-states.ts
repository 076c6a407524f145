import {
  catchError,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  from,
  map,
  merge,
  NEVER,
  of,
  pairwise,
  race,
  scan,
  shareReplay,
  startWith,
  switchMap,
  take,
  tap,
  throttleTime,
  timer,
  withLatestFrom,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { firstLookAgainMs, lookAgainFactor, lostCallTries, toldLookMs, type Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { HealthReason } from '../lib/plugin/health.js'
import type { LinkState, ProbeAnswer } from '../lib/plugin/kind.js'
import type { DialAnswer, SocketSight } from '../lib/plugin/socket.js'
import { poll } from './operators/poll.js'
import { retrySaying } from './operators/retry-saying.js'
import type { Connection, ConnectionState } from './values.js'

export interface ConnectionPorts {
  /** Opens a channel when subscribed to, closes it when left. One value; never completes. */
  connect: () => Observable<Connection>
  /** A plain connect to the path, to tell why a call could not be made. */
  dial: () => ObservableInput<DialAnswer>
}

type ConnectionTiming = Pick<Timing, 'heartbeatMs' | 'unhealthyBeatMs' | 'probeTimeoutMs' | 'relookMs'>

/**
 * What is seen at a socket's path flows in; what is known of the server behind it flows out, whenever that changes.
 *
 * A new identity means a new server: a new channel, and everything about it is learned anew. A missing or refused socket is hard
 * evidence and counts at once. A lost connection is no death: it is looked into now, and the answer decides; so is what the plugin tells
 * by itself, where it can. What can be chance is
 * repeated at once: of probes that time out two in a row count, since the first may have been this process standing still; of calls
 * that are lost `lostCallTries`, since a server may close idle connections faster than it is asked.
 */
export function connectionStates(
  sight$: Observable<SocketSight>,
  ports: ConnectionPorts,
  timing: ConnectionTiming,
): Observable<ConnectionState> {
  return sight$.pipe(
    distinctUntilChanged(sameSight),
    startWith(undefined),
    pairwise(),
    switchMap(([before, sight]) => {
      if (sight === undefined) return EMPTY
      if (sight.kind !== 'socket') return of(absent(sight))
      const served$ = served(ports, timing)
      return before?.kind === 'socket' ? concat(of(replaced), served$) : served$
    }),
    distinctUntilChanged(sameState),
  )
}

/** A channel to one server and the looks over it; where that fails as such, another one after a pause. */
function served(ports: ConnectionPorts, timing: ConnectionTiming): Observable<ConnectionState> {
  return defer(() => ports.connect()).pipe(
    switchMap((connection) => looks(connection, ports, timing)),
    retrySaying(
      (failure) => nobody(unhealthy('disconnected', messageOf(failure))),
      () => timing.unhealthyBeatMs,
    ),
  )
}

/** The looks at one server: a beat, and one more whenever the connection is lost, or the plugin tells that it has changed. */
function looks(
  connection: Connection,
  { dial }: ConnectionPorts,
  timing: ConnectionTiming,
): Observable<ConnectionState> {
  return defer(() => {
    const link$ = connection.link$.pipe(shareReplay({ bufferSize: 1, refCount: true }))
    const epoch$ = link$.pipe(scan((epoch, link) => (link === 'connected' ? epoch + 1 : epoch), 0))
    const lost$ = link$.pipe(
      filter((link) => link === 'lost'),
      throttleTime(timing.relookMs, undefined, { leading: true, trailing: true }),
    )
    let failures = 0
    const lookAndCount = (): Observable<Verdict> =>
      look(connection, link$, dial, timing.probeTimeoutMs).pipe(
        tap(({ healthy }) => (failures = healthy ? 0 : failures + 1)),
      )
    const pauseMs = (): number =>
      failures === 0
        ? timing.heartbeatMs
        : Math.min(Math.round(firstLookAgainMs * lookAgainFactor ** (failures - 1)), timing.unhealthyBeatMs)
    return poll(lookAndCount, { ask$: merge(lost$, told(connection, link$, timing)), pauseMs }).pipe(
      withLatestFrom(epoch$),
      map(([verdict, epoch]) => ({ ...verdict, epoch, connection })),
    )
  })
}

/**
 * What a plugin tells by itself, over each connection anew. It only asks for a look, which says what is: a look under way may have seen
 * the time before it. A telling that is cut short asks for one too, and is begun again after a pause.
 */
function told(
  { watch }: Connection,
  link$: Observable<LinkState>,
  { unhealthyBeatMs }: Pick<ConnectionTiming, 'unhealthyBeatMs'>,
): Observable<unknown> {
  if (!watch) return NEVER
  const watched$ = defer(watch).pipe(
    retrySaying(
      () => undefined,
      () => unhealthyBeatMs,
    ),
  )
  return link$.pipe(
    map((link) => link === 'connected'),
    distinctUntilChanged(),
    switchMap((connected) => (connected ? watched$ : EMPTY)),
    throttleTime(toldLookMs, undefined, { leading: true, trailing: true }),
  )
}

type Verdict = Omit<ConnectionState, 'epoch' | 'connection'>

/** One look, and more at once where it came to what can be chance: one after a timeout, some after a connection that was lost. */
function look(
  connection: Connection,
  link$: Observable<LinkState>,
  dial: ConnectionPorts['dial'],
  probeTimeoutMs: number,
): Observable<Verdict> {
  // Where there is no connection it dials first, since the error of a dial is exact.
  const once$ = link$.pipe(
    take(1),
    switchMap((link): ObservableInput<DialAnswer> => (link === 'connected' ? of({ kind: 'connected' }) : dial())),
    take(1),
    switchMap((answer) => (answer.kind === 'connected' ? probed(connection, probeTimeoutMs) : of(refused(answer)))),
    take(1),
    catchError((failure: unknown) => of(unhealthy('disconnected', messageOf(failure)))),
  )
  const again = (triesLeft: number): Observable<Verdict> =>
    once$.pipe(
      switchMap((verdict) => {
        const left = Math.min(triesLeft, triesOf(verdict)) - 1
        return left > 0 ? again(left) : of(verdict)
      }),
    )
  return again(lostCallTries)
}

/** How often in a row it has to come to this before it counts. */
function triesOf({ reason }: Verdict): number {
  if (reason === 'disconnected') return lostCallTries
  return reason === 'probe-timeout' ? 2 : 1
}

function probed(connection: Connection, probeTimeoutMs: number): Observable<Verdict> {
  const answeredBefore = connection.answered()
  // A busy plugin that misses a probe is alive all the same.
  const late = (): ProbeAnswer | { kind: 'timeout' } =>
    connection.answered() > answeredBefore ? { kind: 'ready' } : { kind: 'timeout' }
  // In two halves, of which the second begins when the first is seen to be over: after this process stood still, an answer that came
  // meanwhile is heard before its time is up.
  const overdue$ = timer(probeTimeoutMs / 2).pipe(
    switchMap(() => timer(probeTimeoutMs / 2)),
    map(late),
  )
  return race(from(connection.probe()), overdue$).pipe(map((answer) => judged(answer, probeTimeoutMs)))
}

const ready: Verdict = { healthy: true, reason: 'ready', description: 'ready', answers: true }

function unhealthy(reason: HealthReason, description: string, answers = false): Verdict {
  return { healthy: false, reason, description, answers }
}

function judged(answer: ProbeAnswer | { kind: 'timeout' }, probeTimeoutMs: number): Verdict {
  switch (answer.kind) {
    case 'ready':
      return ready
    case 'not-ready':
      return unhealthy('not-ready', answer.description, true)
    case 'failed':
      return unhealthy('probe-failed', answer.description, true)
    case 'not-served':
    case 'not-csi':
      return unhealthy(answer.kind, answer.description)
    case 'timeout':
      return unhealthy('probe-timeout', `it accepts connections, and did not answer two probes of ${probeTimeoutMs} ms`)
    case 'unreachable':
      return unhealthy('disconnected', answer.description)
  }
}

const dialReasons = {
  missing: 'socket-missing',
  refused: 'socket-refused',
  denied: 'access-denied',
  'not-a-socket': 'not-a-socket',
  failed: 'disconnected',
} as const

function refused(answer: Exclude<DialAnswer, { kind: 'connected' }>): Verdict {
  return unhealthy(dialReasons[answer.kind], answer.description)
}

function absent(sight: Exclude<SocketSight, { kind: 'socket' }>): ConnectionState {
  const description = {
    missing: 'there is no socket',
    'not-a-socket': 'a file that is no socket is in its place',
    denied: 'the socket may not be looked at',
  }[sight.kind]
  return nobody(unhealthy(dialReasons[sight.kind], description))
}

/** A state in which there is nobody to be called. */
function nobody(verdict: Verdict): ConnectionState {
  return { ...verdict, epoch: 0, connection: undefined }
}

const replaced = nobody(unhealthy('socket-replaced', 'another server took the socket; it has not answered yet'))

function sameSight(a: SocketSight, b: SocketSight): boolean {
  return a.kind === b.kind && (a.kind !== 'socket' || b.kind !== 'socket' || a.identity === b.identity)
}

function sameState(a: ConnectionState, b: ConnectionState): boolean {
  return a.healthy === b.healthy && a.reason === b.reason && a.epoch === b.epoch && a.connection === b.connection
}
