import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  ignoreElements,
  map,
  merge,
  of,
  retry,
  switchMap,
  take,
  throwError,
  timer,
  type MonoTypeOperatorFunction,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { deadRegistrarRetryMaxMs, registrarRetryMaxMs, registrarRetryMs } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'
import type { AnnouncementVerdict } from '../../lib/plugin/announcement-note.js'
import type { RegistrarInfo, RegistrarVerdict } from '../../lib/plugin/announcement.js'
import { retrySaying } from './retry-saying.js'

/** Asks a registrar until it has answered; says each failure. */
export function asked(
  ask: () => ObservableInput<RegistrarInfo>,
): Observable<{ info: RegistrarInfo } | PlugstreamError> {
  return defer(ask).pipe(
    take(1),
    map((info) => ({ info })),
    retrySaying((thrown) => PlugstreamError.from(thrown, 'ERR_SOCKET', 'asking a registrar'), pauseMs),
  )
}

/**
 * Tells the registrar each verdict that flows by. It is told again that its plugin is registered where it did not hear; and not that it is
 * not, since it may end before it has answered.
 */
export function telling(
  tell: (verdict: RegistrarVerdict) => ObservableInput<unknown>,
): MonoTypeOperatorFunction<AnnouncementVerdict> {
  const heardOf = (verdict: AnnouncementVerdict): Observable<never> => {
    const isFailure = verdict instanceof PlugstreamError
    return defer(() => tell(isFailure ? { registered: false, error: verdict.message } : { registered: true })).pipe(
      take(1),
      retry({
        delay: (thrown: unknown, failures) =>
          !isFailure && isRetryable(thrown) ? timer(pauseMs(failures, thrown)) : throwError(() => thrown),
      }),
      catchError(() => EMPTY),
      ignoreElements(),
    )
  }
  return (verdict$) =>
    verdict$.pipe(
      distinctUntilChanged((a, b) => errorOf(a) === errorOf(b)),
      switchMap((verdict) => merge(of(verdict), heardOf(verdict))),
    )
}

/** Who cannot answer is not asked again soon: what is on a socket changes with the socket. */
function pauseMs(failures: number, thrown: unknown): number {
  const longestMs = isRetryable(thrown) ? registrarRetryMaxMs : deadRegistrarRetryMaxMs
  return Math.min(registrarRetryMs * 2 ** (failures - 1), longestMs)
}

function isRetryable(thrown: unknown): boolean {
  return thrown instanceof PlugstreamError && thrown.retryable
}

function errorOf(verdict: AnnouncementVerdict): string {
  return verdict instanceof PlugstreamError ? verdict.message : ''
}
