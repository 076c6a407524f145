import {
  concat,
  concatMap,
  defer,
  from,
  map,
  retry,
  throwError,
  timer,
  type Observable,
  type ObservableInput,
} from 'rxjs'
import { engineAgainMs } from '../lib/defaults.js'
import {
  afterLook,
  eventsBetween,
  type ContainerHint,
  type ContainerLook,
  type ContainerSight,
  type ContainerSights,
} from '../lib/docker/container-sight.js'
import type { TaskEvent } from '../lib/task/task.js'

export interface ContainerEventPorts {
  all(): ObservableInput<readonly ContainerSight[]>
  one(id: string): ObservableInput<ContainerSight | undefined>
  now(): number
}

/**
 * What an engine hints at flows in; what happened to tasks flows out. A hint only says where to look: each look is compared with the one
 * before it, so that what was missed, while nobody listened too, is made up for. An engine that goes away is listened to again, and all is
 * looked at anew; the output neither fails nor ends.
 *
 * @param hint$ - each subscription listens anew, and says `connected` first.
 */
export function containerEvents(hint$: Observable<ContainerHint>, ports: ContainerEventPorts): Observable<TaskEvent> {
  return defer(() => {
    let sights: ContainerSights = new Map()
    const ended$ = throwError(() => new Error('the engine has ended its stream of events'))
    return concat(hint$, ended$).pipe(
      concatMap((hint): Observable<ContainerLook> => {
        if (hint.kind === 'connected') return from(ports.all()).pipe(map((all) => ({ kind: 'all', sights: all })))
        const { id } = hint
        return from(ports.one(id)).pipe(map((sight) => ({ kind: 'one', id, sight })))
      }),
      concatMap((look) => {
        const before = sights
        sights = afterLook(before, look)
        return eventsBetween(before, sights, ports.now())
      }),
      retry({ delay: () => timer(engineAgainMs) }),
    )
  })
}
