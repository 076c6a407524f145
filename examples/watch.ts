// Follows a host as a slow reader would: the whole first, then changes, and the whole again after it fell behind.
//
//   node --import tsx/esm examples/watch.ts
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHost, outlet } from 'plugstream'
import { NEVER } from 'rxjs'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-watch-'))
{
  await using host = await openHost({ stateDir: scratch, task$: NEVER })
  const { registry } = host
  const register = (allocId: string) =>
    registry.register({
      type: 'csi-node',
      name: 'disk',
      allocId,
      connection: { socketPath: join(scratch, `${allocId}.sock`) },
    })
  await register('first')

  const events = outlet({ snapshot: () => registry.list(), change$: registry.event$, maxBufferedCount: 2 })
  for await (const item of events) {
    if (item.kind === 'snapshot') {
      console.log(`the whole: ${item.value.map((plugin) => plugin.allocId).join(' ')}; ${item.missed} missed`)
      if (item.missed > 0) break
      await register('second') // in time for this reader
    } else {
      console.log(`${item.value.kind} ${item.value.plugin.allocId}`)
      for (const allocId of ['third', 'fourth', 'fifth']) await register(allocId) // one more than it can hold
    }
  }
}
await rm(scratch, { recursive: true, force: true })
