import {
  catchError,
  combineLatest,
  defer,
  distinctUntilChanged,
  filter,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  scan,
  switchMap,
  take,
  takeUntil,
  type Observable,
} from 'rxjs'
import type { Timing } from '../lib/defaults.js'
import { messageOf } from '../lib/errors.js'
import type { PluginFacts, PluginFingerprint } from '../lib/plugin/fingerprint.js'
import type { PluginInfo, PluginType, RegistryEvent } from '../lib/plugin/plugin.js'
import { poll } from './operators/poll.js'
import { retryLostCall } from './operators/retry-lost-call.js'
import type { Connection, PluginInstance } from './values.js'

export interface FingerprintPorts {
  /** Unix ms. */
  now: () => number
  /** A plugin that has shown to be another than it was read to be: each of its instances is read again at once. Default: none. */
  outdated$?: Observable<Pick<PluginInfo, 'type' | 'name'>>
}

/**
 * Instances flow in; what each can do flows out, when something in it changes. A healthy fingerprint was read over the connection that
 * is healthy now; an unhealthy one keeps what was last known, and nothing flows before something is. Read again after every
 * reconnect, when it is outdated, and every `fingerprintIntervalMs`. The last one of an instance is unhealthy and `final`.
 */
export function fingerprints(
  instance$: Observable<PluginInstance>,
  { now, outdated$ = NEVER }: FingerprintPorts,
  timing: Pick<Timing, 'fingerprintIntervalMs' | 'unhealthyBeatMs'>,
): Observable<PluginFingerprint> {
  return instance$.pipe(
    mergeMap(({ ref, plugin$, state$, gone$ }) => {
      const ask$ = outdated$.pipe(filter(({ type, name }) => type === ref.type && name === ref.name))
      const reading$ = state$.pipe(
        switchMap(({ healthy, description, connection }) =>
          healthy && connection
            ? readings(connection, ref.type, ask$, timing)
            : of<Reading>({ healthy: false, description }),
        ),
      )
      // the reading first: where both change in one turn, no new plugin is shown with what was read from the old one
      const live$ = combineLatest([reading$, plugin$]).pipe(takeUntil(gone$))
      return merge(live$, gone$).pipe(
        scan<[Reading, PluginInfo] | RegistryEvent, PluginFingerprint | undefined>(
          (last, input) => (Array.isArray(input) ? next(last, ...input, now()) : ended(last, input, now())),
          undefined,
        ),
        filter((fingerprint) => fingerprint !== undefined),
        distinctUntilChanged(),
      )
    }),
  )
}

/** What one reading came to; without facts where it failed, or where nobody could be asked. */
interface Reading {
  healthy: boolean
  description: string
  facts?: PluginFacts
  /** The plugin was asked and answered with an error. */
  failed?: true
}

/**
 * Reads over one connection again and again; one that fails is made again at once, since a connection that closes may lose a call. Once it was read, a reading that fails changes nothing but when it is tried again.
 */
function readings(
  connection: Connection,
  type: PluginType,
  ask$: Observable<unknown>,
  timing: Pick<Timing, 'fingerprintIntervalMs' | 'unhealthyBeatMs'>,
): Observable<Reading> {
  const read = (): Observable<Reading> =>
    defer(() => connection.fingerprint(type)).pipe(
      take(1),
      retryLostCall(),
      map((facts): Reading => ({ healthy: true, description: 'healthy', facts })),
      catchError((failure: unknown) => of<Reading>({ healthy: false, description: messageOf(failure), failed: true })),
    )
  return poll(read, {
    ask$,
    pauseMs: (last) => (last?.facts ? timing.fingerprintIntervalMs : timing.unhealthyBeatMs),
  }).pipe(scan((known, reading) => (known.facts && !reading.facts ? known : reading)))
}

function next(
  last: PluginFingerprint | undefined,
  reading: Reading,
  plugin: PluginInfo,
  at: number,
): PluginFingerprint | undefined {
  if (!last && !reading.facts && !reading.failed) return undefined
  const facts = reading.facts ?? factsOf(last)
  const { healthy, description: healthDescription } = reading
  const fingerprint = { ...facts, plugin, healthy, healthDescription, updatedAt: at, final: false }
  return last && isSame(last, fingerprint) ? last : fingerprint
}

function ended(last: PluginFingerprint | undefined, event: RegistryEvent, at: number): PluginFingerprint | undefined {
  const healthDescription = event.reason ?? 'deregistered'
  return last && { ...last, plugin: event.plugin, healthy: false, healthDescription, updatedAt: at, final: true }
}

function factsOf(last: PluginFingerprint | undefined): PluginFacts {
  const { requiresControllerPlugin = false, requiresTopologies = false, controller, node } = last ?? {}
  return { requiresControllerPlugin, requiresTopologies, ...(controller && { controller }), ...(node && { node }) }
}

/** Facts are plain data read in one fixed order, so that their text tells whether they are the same. */
function isSame(a: PluginFingerprint, b: PluginFingerprint): boolean {
  return a.plugin === b.plugin && JSON.stringify({ ...a, updatedAt: 0 }) === JSON.stringify({ ...b, updatedAt: 0 })
}
