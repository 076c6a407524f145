import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Scope } from '../../lib/scope.js'

/** A directory for one bench, which is removed when the scope closes. */
export function scratch(): { directory: string; scope: Scope } {
  const directory = mkdtempSync(join(tmpdir(), 'plugstream-bench-'))
  const scope = new Scope()
  scope.add(() => rmSync(directory, { recursive: true, force: true }))
  return { directory, scope }
}

/** Ms since 1970 with all their decimals: comparable between the processes of one machine. */
export function instant(): number {
  return performance.timeOrigin + performance.now()
}
