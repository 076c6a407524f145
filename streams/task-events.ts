import { concat, concatMap, defer, retry, throwError, timer, type Observable } from 'rxjs'
import { now as systemNow } from '../lib/clock.js'
import { engineAgainMs } from '../lib/defaults.js'
import { takeOptions } from '../lib/options.js'
import { afterLook, eventsBetween, type TaskLook, type TaskSights } from '../lib/task/task-sight.js'
import type { TaskEvent } from '../lib/task/task.js'

/**
 * Looks at whatever runs tasks flow in; what happened to the tasks flows out, for `openHost({ task$ })`. Each look is compared with the one
 * before, so that nothing hangs on an event that was missed. A source that ends or fails is subscribed to again; the output does neither.
 *
 * @param look$ Each subscription looks at all of them first, then at each to which something has happened.
 * @param init.now Unix ms. Default: the system's time.
 * @throws ERR_OPTION_INVALID naming the field.
 * @example taskEvents(eachOf(async function* (signal) {
 *   const change$ = await units.listen(signal) // before the look, so that nothing falls between them
 *   yield { kind: 'all', sights: await units.list(signal) }
 *   for await (const id of change$) yield { kind: 'one', id, sight: await units.get(id, signal) }
 * }))
 */
export function taskEvents(
  look$: Observable<TaskLook>,
  init: { now?: (() => number) | undefined } = {},
): Observable<TaskEvent> {
  const { now = systemNow } = takeOptions('init', init, ['now'])
  return defer(() => {
    let sights: TaskSights | undefined
    const ended$ = throwError(() => new Error('the looks have ended'))
    return concat(look$, ended$).pipe(
      concatMap((look) => {
        const before = sights
        sights = afterLook(before ?? new Map(), look)
        return eventsBetween(before, sights, now())
      }),
      retry({ delay: () => timer(engineAgainMs) }),
    )
  })
}
