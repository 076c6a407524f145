import {
  combineLatest,
  connect,
  distinctUntilChanged,
  map,
  NEVER,
  of,
  startWith,
  switchMap,
  take,
  timer,
  withLatestFrom,
  type OperatorFunction,
} from 'rxjs'

export interface OverdueInit<T> {
  /** What is known before anything flowed in. */
  first: T
  /** Whether a value asks for more patience. */
  asksForPatience: (value: T) => boolean
  /** How long nothing may ask for patience, in ms. Counted anew when patience was asked for and is no more. */
  timeoutMs: number
  /** How long patience may be asked for, in ms, counted from the beginning. */
  patienceMs: number
}

/** Gives the last value once, when something is overdue by then; leave it when what was waited for has come. */
export function overdue<T>({ first, asksForPatience, timeoutMs, patienceMs }: OverdueInit<T>): OperatorFunction<T, T> {
  return connect((value$) => {
    const spent$ = timer(patienceMs).pipe(
      map(() => true),
      startWith(false),
    )
    const asked$ = value$.pipe(map(asksForPatience), startWith(asksForPatience(first)))
    return combineLatest([asked$, spent$]).pipe(
      map(([asked, spent]) => (asked ? (spent ? 'none' : 'patience') : 'timeout')),
      distinctUntilChanged(),
      switchMap((left) => (left === 'timeout' ? timer(timeoutMs) : left === 'none' ? of(0) : NEVER)),
      take(1),
      withLatestFrom(value$.pipe(startWith(first))),
      map(([, last]) => last),
    )
  })
}
