import {
  catchError,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  NEVER,
  of,
  repeat,
  shareReplay,
  switchMap,
  take,
  tap,
  throwError,
  timeout,
  type Observable,
  type ObservableInput,
  type OperatorFunction,
} from 'rxjs'
import { messageOf, PlugstreamError } from '../../lib/errors.js'
import type { HealthReason } from '../../lib/plugin/health.js'
import type { PluginIdentity } from '../../lib/plugin/kind.js'
import type { PluginInfo } from '../../lib/plugin/plugin.js'
import type { Connection, ConnectionState } from '../values.js'
import { retryLostCall } from './retry-lost-call.js'
import { retrySaying } from './retry-saying.js'
import { retryStoreWrite } from './retry-store-write.js'

export interface IdentifiedInit {
  /** The instance now, then after every update. */
  plugin$: Observable<PluginInfo>
  /** Tells the registry who answers; answers when saved. */
  update: (identity: PluginIdentity) => ObservableInput<unknown>
  /** Pause before a plugin that does not say who it is, is asked again. */
  unhealthyBeatMs: number
  /** How long it may take to say so: who answers probes and not this is as good as hung. */
  probeTimeoutMs: number
}

/**
 * Lets a healthy state pass once the plugin has said, over this very connection, who it is, and the registry says the same: where
 * another version answers, the registry is told first, and what is registered by hand meanwhile is confirmed by asking again. Other
 * states pass as they are.
 */
export function identified({
  plugin$: updated$,
  update,
  unhealthyBeatMs,
  probeTimeoutMs,
}: IdentifiedInit): OperatorFunction<ConnectionState, ConnectionState> {
  return (state$) =>
    defer(() => {
      const plugin$ = concat(updated$, NEVER).pipe(shareReplay({ bufferSize: 1, refCount: true }))
      const now$ = plugin$.pipe(take(1))
      /** The last state that passed as healthy, and the plugin it was said of. */
      let known: { state: ConnectionState; plugin: PluginInfo } | undefined

      const passed = (state: ConnectionState): Observable<ConnectionState> =>
        now$.pipe(
          tap((plugin) => (known = { state, plugin })),
          map(() => state),
        )
      const told = (state: ConnectionState, identity: PluginIdentity): Observable<ConnectionState> => {
        const save$ = defer(() => update(identity)).pipe(
          take(1),
          ignoreElements(),
          // A store that cannot save is no fault of the plugin: it is healthy meanwhile, and the save is tried again.
          catchError((failure: unknown) =>
            concat(
              of(state),
              throwError(() => failure),
            ),
          ),
          retryStoreWrite(),
          catchError(() => NEVER),
        )
        const replaced = unlike(state, 'socket-replaced', `${identity.provider} ${identity.version} answers now`)
        // Where nothing passed before, there is nothing to doubt: it was registered without a version, or while nobody watched.
        return concat(known ? of(replaced) : EMPTY, save$, passed(state))
      }
      const asked = (state: ConnectionState, connection: Connection): Observable<ConnectionState> =>
        defer(() => connection.identify()).pipe(
          take(1),
          timeout({ first: probeTimeoutMs, with: () => throwError(() => mute(probeTimeoutMs)) }),
          retryLostCall(),
          switchMap((said) =>
            now$.pipe(
              map((plugin) => {
                const { provider = plugin.provider, version = plugin.version } = said
                const identity = { provider, version }
                return isSame(identity, plugin) ? passed(state) : told(state, identity)
              }),
            ),
          ),
          retrySaying(
            (failure) => of(unlike(state, reasonOfUnidentified(failure), messageOf(failure))),
            () => unhealthyBeatMs,
          ),
          switchMap((answer$) => answer$),
        )
      const confirmed = (state: ConnectionState, connection: Connection): Observable<ConnectionState> => {
        const isKnown = (plugin: PluginInfo): boolean =>
          known?.state.connection === connection && known.state.epoch === state.epoch && isSame(known.plugin, plugin)
        const changedByHand$ = plugin$.pipe(
          filter((plugin) => !isKnown(plugin)),
          take(1),
          map(({ version }) => unlike(state, 'socket-replaced', `it was registered anew as version ${version}`)),
        )
        const agreed$ = now$.pipe(switchMap((plugin) => (isKnown(plugin) ? of(state) : asked(state, connection))))
        return concat(agreed$, changedByHand$).pipe(repeat())
      }
      const confirmed$ = state$.pipe(
        switchMap((state) => (state.healthy && state.connection ? confirmed(state, state.connection) : of(state))),
        distinctUntilChanged(isSameState),
      )
      // Listens from the start: who follows both hears of the doubt about a state before the plugin that raises it.
      return merge(confirmed$, plugin$.pipe(ignoreElements()))
    })
}

/** Why a plugin counts as unhealthy that fails to say who it is. */
export function reasonOfUnidentified(failure: unknown): HealthReason {
  const isUnserved = failure instanceof PlugstreamError && failure.code === 'ERR_CSI_UNSUPPORTED'
  return isUnserved ? 'not-csi' : 'probe-failed'
}

function isSame(a: PluginIdentity, b: PluginIdentity): boolean {
  return a.version === b.version && a.provider === b.provider
}

function isSameState(a: ConnectionState, b: ConnectionState): boolean {
  return (
    a.reason === b.reason && a.description === b.description && a.epoch === b.epoch && a.connection === b.connection
  )
}

function mute(afterMs: number): PlugstreamError {
  return new PlugstreamError('ERR_TIMEOUT', `it answers probes, and did not say who it is within ${afterMs} ms`)
}

/** The same connection, and yet not healthy. */
function unlike(state: ConnectionState, reason: HealthReason, description: string): ConnectionState {
  return { ...state, healthy: false, reason, description }
}
