// A host that is killed in the middle of its work: it mounts and unmounts everything it is told to, all at once. `argv`: state directory,
// what to do as JSON. It says `done` with the number of what it has done, and ends by nothing of its own.
import { NEVER } from 'rxjs'
import type { MountRequest } from '../../../lib/volume/volume.js'
import { openHost } from '../../../streams/host.js'

export interface VolumeWork {
  what: 'mount' | 'unmount'
  request: MountRequest
}

const [, , stateDir = '', work = '[]'] = process.argv
const { volumes } = await openHost({ stateDir, task$: NEVER })
for (const [at, { what, request }] of (JSON.parse(work) as VolumeWork[]).entries())
  volumes[what](request).then(
    () => console.log(`done ${at}`),
    (failure: unknown) => console.log(`failed ${at}: ${String(failure)}`),
  )
setInterval(() => undefined, 1_000)
