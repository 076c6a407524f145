import {
  catchError,
  distinctUntilChanged,
  EMPTY,
  filter,
  map,
  merge,
  mergeMap,
  NEVER,
  startWith,
  switchMap,
  takeUntil,
  timer,
  type Observable,
} from 'rxjs'
import type { Timing } from '../lib/defaults.js'
import type { PluginInfo, RegistryChange } from '../lib/plugin/plugin.js'
import type { PluginInstance, TaskState } from './values.js'

export interface LostPorts {
  /** The state of the task that serves an instance; phase `unknown` where nothing was told of it. */
  taskState: (plugin: PluginInfo) => Observable<TaskState>
}

/**
 * Instances flow in; the deregistration of those that are lost flows out: restored from the store, claimed by no task, and without an
 * answer for `restoreGraceMs`, then or later. Told again after each further `restoreGraceMs`, should the store not have saved it.
 */
export function lostInstances(
  instance$: Observable<PluginInstance>,
  { taskState }: LostPorts,
  { restoreGraceMs }: Pick<Timing, 'restoreGraceMs'>,
): Observable<RegistryChange> {
  return instance$.pipe(
    filter(({ restored }) => restored),
    mergeMap(({ ref, plugin$, state$, gone$ }) => {
      const claimed$ = plugin$.pipe(
        switchMap(taskState),
        filter(({ phase }) => phase !== 'unknown'),
      )
      return state$.pipe(
        map(({ answers }) => answers),
        startWith(false),
        distinctUntilChanged(),
        switchMap((answers) => (answers ? NEVER : timer(restoreGraceMs, restoreGraceMs))),
        map((): RegistryChange => ({ kind: 'deregister', ref, reason: 'lost' })),
        takeUntil(merge(gone$, claimed$)),
        catchError(() => EMPTY), // what is not known for sure to be lost stays
      )
    }),
  )
}
