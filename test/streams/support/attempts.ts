import { defer, type Observable } from 'rxjs'
import type { MarbleHelpers } from '../../testing/marbles.js'

/** Each subscription gets the next diagram; the last one again for more. */
export function attempts({ cold }: MarbleHelpers, failure: unknown, ...diagrams: string[]): Observable<string> {
  let made = 0
  return defer(() => cold(diagrams[Math.min(made++, diagrams.length - 1)] ?? '', undefined, failure))
}
